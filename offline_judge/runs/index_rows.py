"""Owns the tables of index.sqlite: what is kept of a trace's lines, and pages of samples."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from offline_judge.domain.events import (
    AnyEvent,
    EngineStarted,
    RunFinished,
    RunStarted,
    SampleFinished,
    WarningRaised,
    parse_event,
)
from offline_judge.domain.judgment import Outcome
from offline_judge.domain.run_rows import UNFINISHED, IndexRow, LogLine, RowQuery
from offline_judge.runs.lines import Line

VERSION = 2
"""Of the tables; an index of another one is made anew."""

QUESTION = 200
"""Characters that are kept of a question."""

_SCHEMA = """
CREATE TABLE traces (
  file TEXT PRIMARY KEY, size INTEGER NOT NULL, lines INTEGER NOT NULL,
  last_offset INTEGER NOT NULL, last_hash BLOB NOT NULL
);
CREATE TABLE spans (
  sample_id TEXT NOT NULL, file TEXT NOT NULL, number INTEGER NOT NULL,
  offset INTEGER NOT NULL, length INTEGER NOT NULL,
  PRIMARY KEY (sample_id, file, number)
) WITHOUT ROWID;
CREATE TABLE samples (
  taken INTEGER PRIMARY KEY, sample_id TEXT NOT NULL UNIQUE, time TEXT NOT NULL,
  question TEXT NOT NULL, search TEXT NOT NULL, label INTEGER,
  outcome TEXT NOT NULL, reason TEXT NOT NULL, verdict INTEGER, probability REAL,
  seconds REAL NOT NULL
);
CREATE TABLE log (
  time TEXT NOT NULL, sample_id TEXT NOT NULL, kind TEXT NOT NULL, text TEXT NOT NULL
);
CREATE TABLE run (event TEXT PRIMARY KEY, time TEXT NOT NULL, value TEXT NOT NULL);
"""
_LOGGED = ("run_started", "run_finished", "engine_started", "warning")
_COLUMNS = "sample_id, question, label, outcome, reason, verdict, probability, seconds, time"
_CELLS = (
    "total(label AND verdict), total(NOT label AND verdict), total(label AND NOT verdict), "
    "total(NOT label AND NOT verdict)"
)
_ORDERS = {
    "taken": "taken",
    "id": "sample_id",
    "probability": "probability IS NULL, probability",
    "outcome": "outcome, reason",
    "seconds": "seconds",
}


@dataclass(frozen=True)
class RunBrief:
    """Where a run stands, from its index.

    Attributes:
        planned: Samples it set out to judge.
        ended: The status of its last end; empty where it has none.
        outcomes: Outcome to number of samples.
        cells: Samples called correct by judge and people, by the judge only, by people only, by
            neither.
        unscored: Labelled samples that ended without a verdict.
    """

    planned: int
    ended: str
    outcomes: dict[str, int]
    cells: tuple[int, int, int, int]
    unscored: int


@dataclass(frozen=True)
class RunMaterial:
    """What figures of a run are made of.

    Attributes:
        cells: As of `RunBrief`, for each question that has a labelled and scored sample.
        readings: Label and probability of each of these samples.
        ends: When samples ended, in seconds, in order.
    """

    cells: tuple[tuple[int, int, int, int], ...]
    readings: tuple[tuple[bool, float], ...]
    ends: tuple[float, ...]


@dataclass(frozen=True)
class Span:
    """Neighbouring lines of one sample: in which file, from which line and byte, how many bytes."""

    file: str
    number: int
    offset: int
    length: int


def make_tables(database: sqlite3.Connection) -> None:
    """Make the tables of an empty database."""
    for statement in filter(str.strip, _SCHEMA.split(";")):
        database.execute(statement)
    database.execute(f"PRAGMA user_version = {VERSION}")


class Intake:
    """Takes lines of one file in, in order; neighbours of one sample become one span."""

    def __init__(self, database: sqlite3.Connection, file: str) -> None:
        self._database = database
        self._file = file
        self._spans: list[tuple[str, str, int, int, int]] = []
        self._sample = ""
        self._first: Line | None = None
        self._end = 0

    def add(self, line: Line) -> None:
        """Take one line in."""
        raw = line.raw
        sample = str(raw.get("sample_id", ""))
        if sample != self._sample or self._first is None:
            self._close_span()
            self._sample, self._first = sample, line
        self._end = line.offset + line.length
        kind = raw.get("event")
        if kind == "sample_started":
            _started(self._database, sample, raw)
        elif kind == "sample_finished":
            _finished(self._database, sample, raw)
        elif kind in _LOGGED:
            _logged(self._database, raw)

    def finish(self) -> None:
        """Write the spans."""
        self._close_span()
        self._database.executemany("INSERT INTO spans VALUES (?, ?, ?, ?, ?)", self._spans)
        self._spans.clear()

    def _close_span(self) -> None:
        first, self._first = self._first, None
        if first is not None:
            length = self._end - first.offset
            self._spans.append((self._sample, self._file, first.number, first.offset, length))


def spans_of(database: sqlite3.Connection, sample_id: str) -> list[Span]:
    """Where a sample's lines stand; empty for an unknown sample."""
    query = "SELECT file, number, offset, length FROM spans WHERE sample_id = ? ORDER BY 1, 2"
    return [Span(*row) for row in database.execute(query, (sample_id,))]


def page(database: sqlite3.Connection, query: RowQuery) -> tuple[list[IndexRow], int]:
    """The rows of a query, and how many there are without offset and limit."""
    where, values = _where(query)
    total = database.execute(f"SELECT count(*) FROM samples{where}", values).fetchone()[0]
    way = " DESC" if query.reverse else ""
    keys = ", ".join(f"{key}{way}" for key in _ORDERS[query.order].split(", "))
    # The order is whole, so that no row is on two pages.
    found = database.execute(
        f"SELECT {_COLUMNS} FROM samples{where} ORDER BY {keys}, taken{way} LIMIT ? OFFSET ?",
        (*values, query.limit, query.offset),
    )
    return [_row(values) for values in found], total


def brief(database: sqlite3.Connection) -> RunBrief:
    """Where the run stands."""
    told = {row[0]: row[1:] for row in database.execute("SELECT * FROM run")}
    began, ended = told.get("run_started", ("", "0")), told.get("run_finished", ("", ""))
    counts = database.execute("SELECT outcome, count(*) FROM samples GROUP BY 1 ORDER BY 1")
    # Nothing here is done row by row: it must be quick in a run of a hundred thousand samples.
    row = database.execute(
        f"SELECT {_CELLS}, total(verdict IS NULL) FROM samples "
        "WHERE label IS NOT NULL AND outcome != ?",
        (UNFINISHED,),
    ).fetchone()
    *cells, unscored = map(int, row)
    return RunBrief(
        planned=int(began[1]),
        ended=ended[1] if ended[0] > began[0] else "",
        outcomes={name: number for name, number in counts if name != UNFINISHED},
        cells=(cells[0], cells[1], cells[2], cells[3]),
        unscored=unscored,
    )


def material(database: sqlite3.Connection) -> RunMaterial:
    """What figures are made of."""
    scored = "FROM samples WHERE label IS NOT NULL AND verdict IS NOT NULL"
    grouped = database.execute(f"SELECT {_CELLS} {scored} GROUP BY question")
    readings = database.execute(f"SELECT label, probability {scored} AND probability IS NOT NULL")
    ends = database.execute(
        "SELECT (julianday(time) - 2440587.5) * 86400 FROM samples WHERE time != '' ORDER BY time"
    )
    return RunMaterial(
        cells=tuple((int(a), int(b), int(c), int(d)) for a, b, c, d in grouped),
        readings=tuple((bool(label), share) for label, share in readings),
        ends=tuple(end for (end,) in ends),
    )


def neighbour(database: sqlite3.Connection, sample_id: str, query: RowQuery) -> str | None:
    """The sample nearest behind (before, with `reverse`) one of the samples that a query names."""
    where, values = _where(query)
    sign, way = ("<", "DESC") if query.reverse else (">", "ASC")
    place = f"taken {sign} (SELECT taken FROM samples WHERE sample_id = ?)"
    whole = f"{where} AND {place}" if where else f" WHERE {place}"
    statement = f"SELECT sample_id FROM samples{whole} ORDER BY taken {way} LIMIT 1"
    found = database.execute(statement, (*values, sample_id)).fetchone()
    return str(found[0]) if found else None


def _where(query: RowQuery) -> tuple[str, list[Any]]:
    conditions: list[str] = []
    values: list[Any] = []
    if query.outcome:
        conditions.append("outcome = ?")
        values.append(query.outcome)
    if query.text:
        conditions.append("instr(search, ?)")
        values.append(query.text.casefold())
    if query.disagree:
        conditions.append("label != verdict")
    return (f" WHERE {' AND '.join(conditions)}" if conditions else ""), values


def _started(database: sqlite3.Connection, sample_id: str, raw: dict[str, Any]) -> None:
    sample = raw.get("sample")
    fields = sample if isinstance(sample, dict) else {}
    name = sample_id or str(fields.get("id", ""))
    question = str(fields.get("question", ""))[:QUESTION]
    label = fields.get("label")
    _insert(
        database,
        "ON CONFLICT (sample_id) DO UPDATE SET question = excluded.question, "
        "search = excluded.search, label = excluded.label",
        (
            name,
            "",
            question,
            f"{name} {question}".casefold(),
            int(label) if isinstance(label, bool) else None,
            UNFINISHED,
            "",
            None,
            None,
            0.0,
        ),
    )


def _finished(database: sqlite3.Connection, sample_id: str, raw: dict[str, Any]) -> None:
    event = parse_event(raw)
    if not isinstance(event, SampleFinished):
        return
    judgment = event.judgment if event.outcome is Outcome.SCORED else None
    if (line := log_line(event)) is not None:
        _log(database, line)
    _insert(
        database,
        "ON CONFLICT (sample_id) DO UPDATE SET time = excluded.time, outcome = excluded.outcome, "
        "reason = excluded.reason, verdict = excluded.verdict, "
        "probability = excluded.probability, seconds = excluded.seconds "
        "WHERE excluded.time >= samples.time",
        (
            sample_id,
            event.time,
            "",
            sample_id.casefold(),
            None,
            str(event.outcome),
            event.reason,
            judgment and judgment.verdict,
            judgment and judgment.probability,
            event.seconds,
        ),
    )


def _insert(database: sqlite3.Connection, conflict: str, values: tuple[Any, ...]) -> None:
    columns = "sample_id, time, question, search, label, outcome, reason, verdict, probability, "
    marks = ", ".join("?" * len(values))
    database.execute(f"INSERT INTO samples ({columns}seconds) VALUES ({marks}) {conflict}", values)


def _logged(database: sqlite3.Connection, raw: dict[str, Any]) -> None:
    event = parse_event(raw)
    if isinstance(event, (RunStarted, RunFinished)):
        value = str(event.planned) if isinstance(event, RunStarted) else event.status
        database.execute(
            "INSERT INTO run VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET time = excluded.time, "
            "value = excluded.value WHERE excluded.time >= run.time",
            (event.event, event.time, value),
        )
    if (line := log_line(event)) is not None:
        _log(database, line)


def log_line(event: AnyEvent) -> LogLine | None:
    """What an event tells whoever reads the log of a run; None where that is nothing."""
    match event:
        case RunStarted():
            begun = "resumed" if event.resumed else "begun"
            reused = f", {event.reused:,} of them judged before" if event.reused else ""
            return LogLine(event.time, "run", "", f"{begun}: {event.planned:,} samples{reused}")
        case RunFinished():
            why = f": {event.message}" if event.message else ""
            return LogLine(event.time, "run", "", f"ended, {event.status}{why}")
        case EngineStarted():
            name = f"{event.engine} {event.version}, {event.model}, as {event.role}"
            told = f"up after {event.start_s:.1f} s, {event.slots} slots of {event.window:,} tokens"
            if event.restart:
                told = f"restarted, number {event.restart} ({event.reason}), {told}"
            return LogLine(event.time, "engine", "", f"{name}: {told}")
        case WarningRaised():
            return LogLine(event.time, "warning", event.sample_id, event.message)
        case SampleFinished() if event.outcome is not Outcome.SCORED:
            said = (str(event.outcome), event.reason, event.detail)
            told = ": ".join(dict.fromkeys(part for part in said if part))
            return LogLine(event.time, "failure", event.sample_id, told)
    return None


def log(database: sqlite3.Connection, limit: int) -> list[LogLine]:
    """The last lines of the log, oldest first."""
    query = "SELECT time, kind, sample_id, text FROM log ORDER BY time DESC, rowid DESC LIMIT ?"
    return [LogLine(*row) for row in database.execute(query, (limit,))][::-1]


def _log(database: sqlite3.Connection, line: LogLine) -> None:
    values = (line.time, line.sample_id, line.kind, line.text)
    database.execute("INSERT INTO log VALUES (?, ?, ?, ?)", values)


def _row(values: Iterable[Any]) -> IndexRow:
    name, question, label, outcome, reason, verdict, probability, seconds, time = values
    return IndexRow(
        sample_id=name,
        question=question,
        label=_truth(label),
        outcome=outcome,
        reason=reason,
        verdict=_truth(verdict),
        probability=probability,
        seconds=seconds,
        time=time,
    )


def _truth(value: int | None) -> bool | None:
    return None if value is None else bool(value)
