"""The index: equals the full fold, follows a growing trace, heals itself."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from runs_helpers import called, finished, new_run, record, searched, started, whole_run

from offline_judge.domain.events import RunStarted
from offline_judge.domain.judgment import Outcome
from offline_judge.domain.run_rows import RowQuery
from offline_judge.errors import TraceError
from offline_judge.runs import index as index_module
from offline_judge.runs.lines import Line, read_lines
from offline_judge.runs.store import RunDirectory


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    run = new_run(tmp_path)
    record(run, *whole_run())
    return run


def _index(run: RunDirectory) -> Path:
    return run.path / "index.sqlite"


def _same_as_fold(run: RunDirectory) -> bool:
    """The index against reading everything."""
    events, state = list(run.events()), run.state()
    # The last first: one that an index has lost must not be healed by asking for another.
    for name in sorted({*state.samples, "nobody"}, reverse=True):
        assert run.sample_events(name) == [event for event in events if event.sample_id == name]
    rows = {row.sample_id: row for row in run.index().rows()}
    assert list(rows) == sorted(row.id for row in state.rows())
    for row in state.rows():
        found = rows[row.id]
        assert (found.outcome, found.reason, found.label) == (row.outcome, row.reason, row.label)
        assert (found.verdict, found.probability) == (row.verdict, row.probability)
        assert (found.question, found.seconds) == (row.question, row.seconds)
    taken = run.index().page(RowQuery(limit=1000))[0]
    assert [row.sample_id for row in taken if row.question] == list(state.samples)
    return bool(state.finished)


def test_it_equals_the_full_fold_and_follows_the_trace(run: RunDirectory) -> None:
    assert _same_as_fold(run)
    with run.writer() as writer:
        writer.emit(RunStarted(planned=2, reused=1, resumed=True))
        for event in (started("b"), called("b"), started("c"), searched("b", "z" * 900)):
            writer.emit(event)
            assert _same_as_fold(run)
        writer.emit(finished("b", verdict=False))
        writer.emit(finished("c", Outcome.UNSCORED))
    assert _same_as_fold(run)


def test_only_what_is_new_is_read(run: RunDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    run.index().rows()
    record(run, started("c"))
    offsets: list[int] = []

    def read(path: Path, *, offset: int, number: int) -> Iterator[Line]:
        offsets.append(offset)
        return read_lines(path, offset=offset, number=number)

    before = (run.path / "events-main.jsonl").stat().st_size
    monkeypatch.setattr(f"{index_module.__name__}.read_lines", read)
    record(run, finished("c"))
    assert len(run.index().rows()) == 3
    assert len(run.sample_events("c")) == 2
    assert 0 < offsets[0] < before < offsets[1]


def test_several_traces(run: RunDirectory) -> None:
    time = list(run.events())[5].time
    event = finished("a", verdict=False).model_copy(update={"time": time}).model_dump()
    raws = [{"event": "new", "time": "2000", "sample_id": "b"}, event]
    raws = [{**raw, "seq": seq} for seq, raw in enumerate(raws)]
    (run.path / "events-z.jsonl").write_text("".join(json.dumps(raw) + "\n" for raw in raws))
    assert _same_as_fold(run)


def _deleted(run: RunDirectory) -> None:
    _index(run).unlink()


def _garbage(run: RunDirectory) -> None:
    _index(run).write_bytes(b"garbage" * 1000)


def _empty(run: RunDirectory) -> None:
    _index(run).write_bytes(b"")


def _cut(run: RunDirectory) -> None:
    _index(run).write_bytes(_index(run).read_bytes()[:6000])


def _damaged_page(run: RunDirectory) -> None:
    data = _index(run).read_bytes()
    _index(run).write_bytes(data[:4096] + b"\xab" * (len(data) - 4096))


def _change(run: RunDirectory, *statements: str) -> None:
    database = sqlite3.connect(_index(run))
    for statement in statements:
        database.execute(statement)
    database.commit()
    database.close()


def _older(run: RunDirectory) -> None:
    _change(run, "PRAGMA user_version = 0", "DELETE FROM samples")


def _newer(run: RunDirectory) -> None:
    _change(run, "PRAGMA user_version = 99", "DELETE FROM samples")


def _without_a_table(run: RunDirectory) -> None:
    _change(run, "DROP TABLE spans")


def _wrong_offsets(run: RunDirectory) -> None:
    _change(run, "UPDATE spans SET offset = offset + 1")


def _other_samples(run: RunDirectory) -> None:
    _change(run, "UPDATE spans SET sample_id = 'a' WHERE number > 0 AND sample_id != 'a'")


def _shorter_trace(run: RunDirectory) -> None:
    path = run.path / "events-main.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-2]))


def _other_trace(run: RunDirectory) -> None:
    (run.path / "events-main.jsonl").unlink()
    record(run, *whole_run()[:-1], finished("c"), started("d"))


def _lost_trace(run: RunDirectory) -> None:
    path = run.path / "events-main.jsonl"
    path.rename(path.with_name("events-renamed.jsonl"))


HARM = [
    _deleted,
    _garbage,
    _empty,
    _cut,
    _damaged_page,
    _older,
    _newer,
    _without_a_table,
    _wrong_offsets,
    _other_samples,
    _shorter_trace,
    _other_trace,
    _lost_trace,
]


@pytest.mark.parametrize("harm", HARM, ids=lambda harm: harm.__name__.strip("_"))
def test_an_index_that_does_not_fit_is_built_anew(run: RunDirectory, harm: object) -> None:
    assert _same_as_fold(run)
    assert callable(harm)
    harm(run)
    assert _same_as_fold(run)
    database = sqlite3.connect(_index(run))
    healed = database.execute("SELECT count(*) FROM samples").fetchone()[0]
    database.close()
    assert healed == len(run.state().rows())


def test_an_index_in_use_elsewhere_does_not_keep_anybody_waiting(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_module, "_BUSY_S", 0.05)
    run.index().rows()
    busy = sqlite3.connect(_index(run), isolation_level=None)
    busy.execute("BEGIN EXCLUSIVE")
    inode = _index(run).stat().st_ino
    assert _same_as_fold(run)
    busy.close()
    assert _index(run).stat().st_ino == inode


def test_an_index_that_cannot_be_written_is_kept_in_memory(run: RunDirectory) -> None:
    _index(run).mkdir()
    assert _same_as_fold(run)


def test_damage_of_the_trace_is_told_and_not_hidden(run: RunDirectory) -> None:
    run.index().rows()
    path = run.path / "events-main.jsonl"
    lines = path.read_bytes().split(b"\n")
    lines[3] = b"#" * len(lines[3])
    path.write_bytes(b"\n".join(lines))
    with pytest.raises(TraceError, match=r"events-main\.jsonl:4"):
        run.sample_events("a")
