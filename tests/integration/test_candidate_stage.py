"""Processes that end while a candidate writes: killed, or asked to stop by another one."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest
from run_child import Workplace, ended, wait_until

from offline_judge.domain.events import ResponseWritten

COUNT = 8


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    place = Workplace(tmp_path)
    rows = ({"id": f"s{n}", "question": f"Who is {n}?"} for n in range(COUNT))
    place.data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return place


def _arguments(place: Workplace, *, latency_s: float = 0.01) -> tuple[str, ...]:
    slow = place.write_script(latency_s=latency_s)
    return place.run_arguments("scripted", "--candidate", slow)


def _written(place: Workplace) -> int:
    trace = place.trace()
    return trace.read_bytes().count(b'"event":"response_written"') if trace.exists() else 0


def _responses(place: Workplace) -> list[tuple[str, str]]:
    events = place.newest().events()
    return [(e.sample_id, e.response) for e in events if isinstance(e, ResponseWritten)]


def test_what_was_written_before_a_kill_is_not_written_again(place: Workplace) -> None:
    child = place.start(*_arguments(place))
    wait_until(lambda: _written(place) >= 3, child)
    child.kill()
    child.communicate()
    before = _responses(place)
    assert place.started() == 0

    code, out, err = place.finish("resume", "last", "--json")
    assert code == 0, err
    assert json.loads(out)["summary"]["outcomes"] == {"scored": COUNT}
    after = _responses(place)
    assert after[: len(before)] == before
    assert sorted(name for name, _ in after) == [f"s{n}" for n in range(COUNT)]


@pytest.mark.parametrize("drain", [True, False])
def test_another_process_stops_the_writing(place: Workplace, drain: bool) -> None:
    # Writing outlasts the start of that other process, on a busy machine too.
    child = place.start(*_arguments(place, latency_s=0.3))
    wait_until(lambda: _written(place) >= 2, child)
    code, _, err = place.finish("cancel", "last", *(["--drain"] if drain else []))
    assert code == 0, err
    assert ended(child)[0] == 130
    assert place.newest().state().status == ("drained" if drain else "cancelled")
    assert 2 <= _written(place) < COUNT
    assert place.finished() == 0


def test_an_interrupt_finishes_the_response_in_flight(place: Workplace) -> None:
    child = place.start(*_arguments(place, latency_s=0.1))
    wait_until(lambda: _written(place) >= 1, child)
    child.send_signal(signal.SIGINT)
    code, _, err = ended(child)
    assert code == 130
    assert "resume" in err
    assert place.newest().state().status == "drained"
