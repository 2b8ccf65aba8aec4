"""A run in a process of its own, stopped or disturbed in every way a user or a machine knows."""

from __future__ import annotations

import json
import signal
import subprocess
from itertools import islice
from pathlib import Path

import pytest
from run_child import Workplace, ended, final_counts, judged_again, wait_until

from offline_judge import api
from offline_judge.domain.events import EngineStarted, SampleFinished
from offline_judge.errors import RunNotFoundError
from offline_judge.runs.control import ControlClient
from offline_judge.runs.store import RunDirectory
from offline_judge.settings import Settings

COUNT = 8
SLOW_S = 0.02


@pytest.fixture
def work(tmp_path: Path) -> Workplace:
    place = Workplace(tmp_path)
    place.write_data(COUNT)
    return place


@pytest.fixture
def judge(work: Workplace) -> str:
    return work.write_script(latency_s=SLOW_S)


@pytest.fixture
def settings(work: Workplace, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("XDG_RUNTIME_DIR", work.env["XDG_RUNTIME_DIR"])
    return Settings(data_dir=work.env["OFFLINE_JUDGE_DATA_DIR"])


def _outcomes(directory: RunDirectory) -> list[str]:
    events = directory.events()
    return [str(event.outcome) for event in events if isinstance(event, SampleFinished)]


def _begun(work: Workplace, judge: str, *more: str) -> subprocess.Popen[str]:
    """A run that has finished its first sample and works on a further one."""
    child = work.start(*work.run_arguments(judge, *more))
    wait_until(lambda: work.finished() >= 1 and work.started() > work.finished(), child)
    return child


def _resumed_to_the_end(work: Workplace, count: int = COUNT) -> None:
    code, _, err = work.finish("resume", "last")
    assert code == 0, err
    events = list(work.newest().events())
    assert final_counts(events) == {f"s{n:02}": 1 for n in range(count)}
    assert judged_again(events) == []


def test_one_interrupt_finishes_what_is_in_flight(work: Workplace, judge: str) -> None:
    child = _begun(work, judge)
    child.send_signal(signal.SIGINT)
    code, _, err = ended(child)
    assert code == 130
    assert "in flight" in err
    outcomes = _outcomes(work.newest())
    assert set(outcomes) == {"scored"}
    assert 2 <= len(outcomes) < COUNT
    assert work.newest().state().status == "drained"
    _resumed_to_the_end(work)


def test_a_second_interrupt_gives_up_what_is_in_flight(work: Workplace) -> None:
    judge = work.write_script(faults=[{"kind": "hang", "match": "The 5th", "times": 0}])
    child = work.start(*work.run_arguments(judge, "--lanes", "1"))
    wait_until(lambda: work.started() == 6, child)
    child.send_signal(signal.SIGINT)
    wait_until(lambda: work.started() == 6, child)
    assert child.stderr is not None
    while "in flight" not in child.stderr.readline():
        pass
    child.send_signal(signal.SIGINT)
    assert ended(child)[0] == 130
    assert _outcomes(work.newest()) == ["scored"] * 5 + ["cancelled"]
    assert work.newest().state().status == "cancelled"
    work.write_script()
    _resumed_to_the_end(work)


def test_told_to_terminate_it_cancels_in_good_order(work: Workplace, judge: str) -> None:
    child = _begun(work, judge)
    child.terminate()
    assert ended(child)[0] == 130
    assert _outcomes(work.newest())[-1] == "cancelled"
    assert work.newest().state().status == "cancelled"
    _resumed_to_the_end(work)


@pytest.mark.parametrize(("flags", "status"), [([], "cancelled"), (["--drain"], "drained")])
def test_another_process_can_stop_it(
    work: Workplace, judge: str, flags: list[str], status: str
) -> None:
    child = _begun(work, judge)
    code, _, err = work.finish("cancel", "last", *flags)
    assert code == 0, err
    assert ended(child)[0] == 130
    assert work.newest().state().status == status


def test_a_second_process_is_refused_with_the_pid_of_the_first(work: Workplace, judge: str) -> None:
    child = _begun(work, judge)
    code, _, err = work.finish("resume", "last")
    assert code == 2
    assert f"Process {child.pid} owns run" in err
    child.kill()
    ended(child)
    _resumed_to_the_end(work)


def test_a_killed_run_is_listed_as_interrupted(work: Workplace, judge: str) -> None:
    child = _begun(work, judge)
    child.kill()
    ended(child)
    code, out, err = work.finish("runs", "list", "--json")
    assert code == 0, err
    (listed,) = map(json.loads, out.splitlines())
    assert listed["status"] == "interrupted"


def test_a_changed_data_file_is_refused_and_nothing_is_lost(work: Workplace, judge: str) -> None:
    child = _begun(work, judge)
    child.kill()
    ended(child)
    original = work.data.read_text()
    before = _outcomes(work.newest())
    work.data.write_text(original.replace("The 0th.", "The zeroth."))
    code, _, err = work.finish("resume", "last")
    assert code == 2
    assert "1 (s00) changed" in err
    assert _outcomes(work.newest()) == before
    work.data.write_text(original)
    _resumed_to_the_end(work)


def test_a_full_disk_ends_it_clean_and_it_goes_on_later(work: Workplace) -> None:
    count = 60
    work.write_data(count)
    child = work.start(*work.run_arguments(work.write_script()), file_limit=70_000)
    code, _, err = ended(child)
    assert code == 1, err
    assert "Traceback" not in err
    assert "resume" in err
    finished = work.finished()
    assert 1 <= finished < count
    assert work.trace().read_bytes().endswith(b"\n")
    _resumed_to_the_end(work, count)


def test_an_engine_that_crashes_in_the_middle_of_a_sample_costs_no_sample(work: Workplace) -> None:
    judge = work.write_script(faults=[{"kind": "crash", "match": "The 3th"}])
    code, _, err = work.finish(*work.run_arguments(judge))
    assert code == 0, err
    events = list(work.newest().events())
    assert final_counts(events) == {f"s{n:02}": 1 for n in range(COUNT)}
    assert set(_outcomes(work.newest())) == {"scored"}
    restarts = [event.restart for event in events if isinstance(event, EngineStarted)]
    assert restarts == [0, 1]


def test_a_reader_that_closes_stderr_does_not_end_it(work: Workplace, judge: str) -> None:
    child = _begun(work, judge)
    assert child.stderr is not None
    child.stderr.close()
    assert child.wait(30) == 0
    assert child.stdout is not None
    child.stdout.close()
    assert _outcomes(work.newest()) == ["scored"] * COUNT


def test_a_watcher_from_outside_sees_the_run_to_its_last_event(
    work: Workplace, judge: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = _begun(work, judge)
    monkeypatch.setenv("XDG_RUNTIME_DIR", work.env["XDG_RUNTIME_DIR"])
    client = ControlClient(Settings().runtime_path, work.newest().run_id)
    with client.subscribe() as messages:
        heard = list(messages)
    assert ended(child)[0] == 0
    events = [message["event"]["event"] for message in heard if "event" in message]
    assert events[-1] == "run_finished"
    assert events.count("sample_finished") >= COUNT - 2
    standings = [message["progress"] for message in heard if "progress" in message]
    assert standings[-1]["finished"] == COUNT
    assert any("verdict" in doing for one in standings for doing in one["in_flight"].values())


def test_a_run_that_is_paused_begins_nothing_until_it_goes_on(
    work: Workplace, settings: Settings
) -> None:
    child = _begun(work, work.write_script(latency_s=5 * SLOW_S))
    with api.watch("last", settings) as watch:
        api.pause("last", settings)
        seen = []
        for news in watch:
            seen.append(news)
            if news.progress is not None and news.progress.paused:
                break
        begun = work.started()
        # Two more ticks, a second apart: a run that went on would have begun several samples.
        ticks = (news.progress for news in watch if news.progress is not None)
        assert all(progress.paused for progress in islice(ticks, 2))
        assert work.started() <= begun + 1
        assert child.poll() is None
        api.unpause("last", settings)
        seen += watch
    assert {news.kind for news in seen} >= {"progress", "event", "slots", "phase"}
    code, _, err = ended(child)
    assert code == 0, err
    assert final_counts(list(work.newest().events())) == {f"s{n:02}": 1 for n in range(COUNT)}


def test_a_paused_run_can_be_drained_and_not_be_paused_again(
    work: Workplace, settings: Settings
) -> None:
    child = _begun(work, work.write_script(latency_s=5 * SLOW_S))
    api.pause("last", settings)
    api.cancel("last", settings, drain=True)
    code, _, _ = ended(child)
    assert code == 130
    with pytest.raises(RunNotFoundError, match="is not running"):
        api.pause("last", settings)
    _resumed_to_the_end(work)
