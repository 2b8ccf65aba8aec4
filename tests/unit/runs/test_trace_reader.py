"""The trace as it is read: damage is named by file and line, the unknown is kept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from runs_helpers import called, finished, new_run, record, searched, started, whole_run

from offline_judge.domain.events import AnyEvent, CallFinished, UnknownEvent
from offline_judge.errors import StorageError, TraceError
from offline_judge.runs.reader import read_events
from offline_judge.runs.store import RunDirectory


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    run = new_run(tmp_path)
    record(run, *whole_run())
    return run


def _trace(run: RunDirectory) -> Path:
    return run.path / "events-main.jsonl"


def _replace_line(run: RunDirectory, number: int, line: bytes) -> None:
    lines = _trace(run).read_bytes().split(b"\n")
    lines[number] = line
    _trace(run).write_bytes(b"\n".join(lines))


DAMAGE = {
    "not json": b"{",
    "empty": b"",
    "zeros": b"\0" * 40,
    "list": b"[1]",
    "not utf-8": b'{"seq":3,"event":"\xff"}',
    "nan": b'{"seq":3,"event":"x","value":NaN}',
    "nested": b"[" * 100_000,
    "huge number": b'{"seq":3,"event":"x","value":' + b"9" * 5000 + b"}",
    "no event": b'{"seq":3}',
    "no seq": b'{"event":"x"}',
    "skipped": b'{"event":"x","seq":4}',
    "repeated": b'{"event":"x","seq":2}',
}


@pytest.mark.parametrize("line", DAMAGE.values(), ids=DAMAGE.keys())
def test_a_damaged_line_in_the_middle_is_named(run: RunDirectory, line: bytes) -> None:
    _replace_line(run, 3, line)
    with pytest.raises(TraceError, match=r"events-main\.jsonl:4"):
        list(run.events())


def test_what_stands_before_the_damage_is_read(run: RunDirectory) -> None:
    _replace_line(run, 3, b"{")
    events = run.events()
    assert [next(events).event for _ in range(3)] == [
        "run_started",
        "sample_started",
        "sample_started",
    ]


def test_a_last_line_without_newline_is_ignored_even_if_it_is_json(run: RunDirectory) -> None:
    data = _trace(run).read_bytes()
    _trace(run).write_bytes(data[:-1])
    assert len(list(run.events())) == 8
    assert run.state().status == "interrupted"


def test_events_of_a_newer_program_are_kept_raw(run: RunDirectory) -> None:
    raw = {"event": "claim_found", "seq": 9, "time": "2999", "sample_id": "a", "claim": {"x": [1]}}
    with _trace(run).open("a") as file:
        file.write(json.dumps(raw) + "\n")
    last = list(run.events())[-1]
    assert isinstance(last, UnknownEvent)
    assert last.model_dump() == raw
    assert run.state().summary().outcomes == {"error": 1, "scored": 1}


def test_a_known_event_of_another_shape_is_kept_raw_and_told(run: RunDirectory) -> None:
    raw = {"event": "sample_finished", "seq": 9, "time": "2999", "sample_id": "c", "outcome": "odd"}
    with _trace(run).open("a") as file:
        file.write(json.dumps(raw) + "\n")
    last = list(run.events())[-1]
    assert isinstance(last, UnknownEvent)
    assert last.model_dump() == raw
    assert "`sample_finished`" in last.unreadable
    assert "`outcome`" in last.unreadable
    summary = run.state().summary()
    assert summary.outcomes == {"error": 1, "scored": 1}
    assert any(last.unreadable in message for message in summary.warnings)


def test_an_event_of_a_newer_kind_is_nothing_to_warn_of(run: RunDirectory) -> None:
    raw = {"event": "claim_found", "seq": 9, "time": "2999", "_problem": "x", "unreadable": "y"}
    with _trace(run).open("a") as file:
        file.write(json.dumps(raw) + "\n")
    assert run.state().warnings == []


def test_several_traces_are_merged_by_time(run: RunDirectory) -> None:
    first = list(run.events())
    raws = [
        {"event": "warning", "seq": 0, "time": "2000-01-01", "message": "earliest"},
        {"event": "warning", "seq": 1, "time": first[4].time, "message": "in between"},
        {"event": "warning", "seq": 2, "time": "2999-01-01", "message": "latest"},
    ]
    lines = "".join(json.dumps(raw) + "\n" for raw in raws)
    (run.path / "events-other.jsonl").write_text(lines)
    kinds = [event.event for event in run.events()]
    assert kinds[0] == kinds[-1] == "warning"
    assert kinds.index("warning", 1) == 6
    assert run.state().warnings == ["earliest", "in between", "latest"]


def test_a_missing_text_is_an_error_of_that_line_but_folding_needs_none(run: RunDirectory) -> None:
    for path in run.path.glob("blobs.sqlite*"):
        path.unlink()
    with pytest.raises(TraceError, match=r"events-main\.jsonl:5"):
        list(run.events())
    assert run.state().summary().outcomes == {"error": 1, "scored": 1}


def test_a_damaged_text_is_not_taken_for_the_text(run: RunDirectory) -> None:
    path = run.path / "blobs.sqlite"
    path.write_bytes(path.read_bytes().replace(b"x" * 50, b"w" * 50))
    with pytest.raises(TraceError, match="damaged"):
        list(run.events())


def test_blobs_that_are_no_database_are_named(run: RunDirectory) -> None:
    (run.path / "blobs.sqlite").write_bytes(b"nonsense" * 1000)
    with pytest.raises(StorageError, match=r"blobs\.sqlite"):
        run.blob("0" * 64)


def test_reading_without_texts_names_them(run: RunDirectory) -> None:
    values = [e.values for e in read_events(run.path, texts=False) if isinstance(e, CallFinished)]
    assert str(values[1]["text"]).startswith("blob:")


def test_reading_beside_a_writer_sees_all_that_is_whole(run: RunDirectory) -> None:
    with run.writer() as writer:
        for number in range(20):
            writer.emit(called(values={"text": f"{number}" * 600}))
            assert len(list(run.events())) == 10 + number
            assert len(run.sample_events("a")) == 5 + number


def test_a_run_without_a_trace_is_empty(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    assert list(run.events()) == []
    assert run.sample_events("a") == []
    assert run.state().rows() == []


def test_reading_leaves_no_files_behind(run: RunDirectory) -> None:
    before = {path.name for path in run.path.iterdir()}
    list(run.events())
    run.blob(run.put_blob("a template"))
    assert {path.name for path in run.path.iterdir()} == before


def test_what_was_written_is_what_is_read(run: RunDirectory, tmp_path: Path) -> None:
    other = new_run(tmp_path, "other")
    events: list[AnyEvent] = [
        started(),
        called(values={"a": "x" * 999}),
        searched(text="y" * 999),
        finished(),
    ]
    record(other, *events)
    bare = [event.model_copy(update={"seq": 0, "time": ""}) for event in other.events()]
    assert bare == events
