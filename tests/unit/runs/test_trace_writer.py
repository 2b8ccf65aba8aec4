"""The trace as it is written: stamps, whole lines, strict JSON, large texts, reopening."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from runs_helpers import called, finished, new_run, record, searched, started, whole_run

from offline_judge.domain.base import text_hash
from offline_judge.domain.events import (
    AnyEvent,
    CallFinished,
    RunStarted,
    UnknownEvent,
    WarningRaised,
)
from offline_judge.errors import RunLockedError, StorageError, TraceError
from offline_judge.runs import writer as writer_module
from offline_judge.runs.store import RunDirectory


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    return new_run(tmp_path)


def _trace(run: RunDirectory) -> Path:
    return run.path / "events-main.jsonl"


def _raw(run: RunDirectory) -> list[dict[str, Any]]:
    return [json.loads(line) for line in _trace(run).read_bytes().splitlines()]


def test_seq_is_gapless_over_reopening_and_time_never_runs_backwards(run: RunDirectory) -> None:
    record(run, *whole_run())
    record(run, *whole_run())
    lines = _raw(run)
    assert [line["seq"] for line in lines] == list(range(18))
    times = [line["time"] for line in lines]
    assert times == sorted(times)
    assert times[0].endswith("Z")


def test_the_clock_set_back_does_not_reorder_events(run: RunDirectory) -> None:
    future = {"event": "warning", "seq": 0, "time": "2999-01-01T00:00:00.000000Z", "message": ""}
    _trace(run).write_text(json.dumps(future) + "\n")
    record(run, WarningRaised(message="later"))
    assert _raw(run)[1]["time"] == future["time"]


def test_one_event_is_one_write(run: RunDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    writes: list[bytes] = []
    real = os.write

    def write(descriptor: int, data: bytes) -> int:
        writes.append(bytes(data))
        return real(descriptor, data)

    monkeypatch.setattr(os, "write", write)
    record(run, *whole_run())
    assert len(writes) == 9
    assert all(line.count(b"\n") == 1 and line.endswith(b"\n") for line in writes)


def test_what_must_last_is_synced_before_emit_returns(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    monkeypatch.setattr(writer_module, "sync", synced.append)
    with run.writer() as writer:
        counts = []
        for event in whole_run():
            writer.emit(event)
            counts.append(len(synced))
    assert counts == [1, 1, 1, 1, 1, 1, 2, 3, 4]


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_a_number_json_does_not_have_is_refused_and_leaves_nothing(
    run: RunDirectory, number: float
) -> None:
    with run.writer() as writer:
        with pytest.raises(ValueError, match="JSON"):
            writer.emit(called(values={"deep": [{"score": number}]}))
        writer.emit(WarningRaised(message="next"))
    assert [line["event"] for line in _raw(run)] == ["warning"]
    assert _raw(run)[0]["seq"] == 0


def test_a_value_json_does_not_have_is_refused_and_leaves_nothing(run: RunDirectory) -> None:
    with run.writer() as writer, pytest.raises(TypeError):
        writer.emit(called(values={"x": object()}))
    assert _raw(run) == []


def test_half_a_surrogate_pair_is_kept(run: RunDirectory) -> None:
    event = called(values={"short": "\ud800", "long": "\udfff" * 600}, text="\udc80")
    record(run, event)
    (found,) = run.events()
    assert found.model_copy(update={"seq": 0, "time": ""}) == event


def test_texts_over_512_characters_go_to_the_blobs_wherever_they_stand(run: RunDirectory) -> None:
    large, exact = "é" * 513, "b" * 512
    untrusted = {"untrusted": "page", "text": large, "tag": "t"}
    event = called(values={"a": large, "b": exact, "c": [untrusted, {"d": [large]}]})
    record(run, event, searched(text=large))
    call, search = _raw(run)
    blob = {"$blob": call["values"]["a"]["$blob"]}
    assert call["values"]["b"] == exact
    assert call["values"]["c"] == [{**untrusted, "text": blob}, {"d": [blob]}]
    assert search["hits"][0]["passage"]["text"] == blob
    assert run.blob(blob["$blob"]) == large
    read_call, read_search = run.events()
    assert isinstance(read_call, CallFinished)
    assert read_call.values == event.values
    assert read_search.model_dump()["hits"][0]["passage"]["text"] == large


def test_texts_are_kept_before_the_line_that_names_them(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(descriptor: int, data: bytes) -> int:
        raise OSError(5, "I/O error")

    with run.writer() as writer:
        monkeypatch.setattr(os, "write", fail)
        with pytest.raises(StorageError):
            writer.emit(called(values={"a": "z" * 600}))
        monkeypatch.undo()
    assert run.blob(text_hash("z" * 600)) == "z" * 600
    assert _raw(run) == []


def test_a_torn_tail_is_cut_and_the_sequence_goes_on(run: RunDirectory) -> None:
    record(run, started(), finished())
    whole = _trace(run).read_bytes()
    _trace(run).write_bytes(whole + b'{"seq":2,"time":"20')
    assert len(list(run.events())) == 2
    record(run, WarningRaised(message="on"))
    assert _trace(run).read_bytes().startswith(whole)
    assert [line["seq"] for line in _raw(run)] == [0, 1, 2]


def test_a_file_that_is_only_a_torn_line_begins_anew(run: RunDirectory) -> None:
    _trace(run).write_bytes(b'{"seq":0' + b" " * 200_000)
    record(run, started())
    assert [line["seq"] for line in _raw(run)] == [0]


def test_a_torn_tail_is_found_across_read_chunks(run: RunDirectory) -> None:
    record(run, started(), called(text="x" * 200_000))
    with _trace(run).open("ab") as file:
        file.write(b"y" * 150_000)
    record(run, finished())
    assert [line["seq"] for line in _raw(run)] == [0, 1, 2]


def test_a_whole_last_line_that_is_no_event_is_an_error_and_stays(run: RunDirectory) -> None:
    record(run, started())
    with _trace(run).open("ab") as file:
        file.write(b"garbage\n")
    before = _trace(run).read_bytes()
    with pytest.raises(TraceError, match=r"events-main\.jsonl:2"):
        run.writer()
    assert _trace(run).read_bytes() == before
    assert run.holder() is None


def test_a_second_writer_is_refused(run: RunDirectory) -> None:
    with run.writer() as writer:
        with pytest.raises(RunLockedError, match=str(os.getpid())):
            run.writer()
        writer.emit(started())
    record(run, finished())
    assert len(_raw(run)) == 2


def test_the_listener_hears_of_an_event_once_it_is_recorded(run: RunDirectory) -> None:
    heard: list[tuple[AnyEvent, int]] = []

    class Ears:
        def event(self, event: AnyEvent) -> None:
            heard.append((event, len(_raw(run))))

    with run.writer(Ears()) as writer:
        writer.emit(RunStarted(planned=1))
        writer.emit(started())
    assert [(event.seq, lines) for event, lines in heard] == [(0, 1), (1, 2)]
    assert all(event.time for event, _ in heard)


def test_a_short_write_is_cut_back_and_says_how_to_go_on(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.write
    with run.writer() as writer:
        writer.emit(started())
        monkeypatch.setattr(os, "write", lambda d, data: real(d, data[:7]))
        with pytest.raises(StorageError, match=f"full.*offline-judge resume {run.run_id}"):
            writer.emit(finished())
        monkeypatch.undo()
        assert len(_raw(run)) == 1
        writer.emit(finished())
    assert [line["seq"] for line in _raw(run)] == [0, 1]


def test_an_interrupt_behind_the_write_leaves_no_uncounted_line(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.write

    def write(descriptor: int, data: bytes) -> int:
        real(descriptor, data)
        raise KeyboardInterrupt

    with run.writer() as writer:
        monkeypatch.setattr(os, "write", write)
        with pytest.raises(KeyboardInterrupt):
            writer.emit(started())
        monkeypatch.undo()
        writer.emit(started())
    assert [line["seq"] for line in _raw(run)] == [0]


def test_a_part_of_a_line_that_cannot_be_cut_stops_the_writer(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.write

    def refuse(descriptor: int, size: int) -> None:
        raise OSError(5, "I/O error")

    with run.writer() as writer:
        writer.emit(started())
        monkeypatch.setattr(os, "write", lambda d, data: real(d, data[:7]))
        monkeypatch.setattr(os, "ftruncate", refuse)
        with pytest.raises(StorageError):
            writer.emit(finished())
        monkeypatch.undo()
        with pytest.raises(StorageError, match="cut off"):
            writer.emit(finished())
    record(run, finished())
    assert [line["seq"] for line in _raw(run)] == [0, 1]


def test_a_writer_opened_in_one_thread_may_be_used_in_another(run: RunDirectory) -> None:
    with run.writer() as writer, ThreadPoolExecutor(1) as pool:
        writer.put_blob("a template")
        pool.submit(writer.emit, called(values={"a": "x" * 600})).result()
        pool.submit(writer.emit, finished()).result()
    assert len(list(run.events())) == 2


def test_a_closed_writer_says_so(run: RunDirectory) -> None:
    writer = run.writer()
    writer.close()
    writer.close()
    with pytest.raises(StorageError, match="closed"):
        writer.emit(started())


def test_an_unknown_event_is_written_as_it_is(run: RunDirectory) -> None:
    raw = {"event": "tomorrow", "sample_id": "a", "more": [1, {"x": None}]}
    record(run, UnknownEvent.model_validate(raw))
    assert _raw(run)[0].items() >= raw.items()


def test_only_the_user_may_read_a_run(run: RunDirectory) -> None:
    record(run, called(values={"a": "x" * 600}))
    run.sample_events("a")
    modes = {path.name: path.stat().st_mode & 0o777 for path in run.path.iterdir()}
    assert set(modes.values()) == {0o600}, modes
    assert run.path.stat().st_mode & 0o777 == 0o700
    assert run.path.parent.stat().st_mode & 0o777 == 0o700
