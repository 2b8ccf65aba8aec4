"""Owns index.sqlite: where each sample's events stand in the traces, and how each ended."""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from offline_judge.domain.events import SampleFinished, parse_event
from offline_judge.domain.judgment import Outcome
from offline_judge.errors import StorageError, TraceError
from offline_judge.runs.lines import Line, parse_line, read_lines
from offline_judge.runs.reader import trace_files

T = TypeVar("T")

_VERSION = 1
_BUSY_S = 10.0
_SURROUNDINGS = frozenset(
    {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_READONLY,
    }
)
"""What SQLite says where the file may be sound but cannot be used now."""
_SCHEMA = """
CREATE TABLE traces (
  file TEXT PRIMARY KEY, size INTEGER NOT NULL, lines INTEGER NOT NULL,
  last_offset INTEGER NOT NULL, last_hash BLOB NOT NULL
);
CREATE TABLE events (
  sample_id TEXT NOT NULL, time TEXT NOT NULL, file TEXT NOT NULL, number INTEGER NOT NULL,
  offset INTEGER NOT NULL, length INTEGER NOT NULL,
  PRIMARY KEY (sample_id, time, file, number)
) WITHOUT ROWID;
CREATE TABLE samples (
  sample_id TEXT PRIMARY KEY, time TEXT NOT NULL, outcome TEXT NOT NULL, reason TEXT NOT NULL,
  verdict INTEGER, probability REAL
);
"""


@dataclass(frozen=True)
class IndexRow:
    """How a sample's last finished attempt ended; verdict and probability where scored."""

    sample_id: str
    outcome: str
    reason: str
    verdict: bool | None
    probability: float | None


@dataclass(frozen=True)
class _Place:
    file: str
    number: int
    offset: int
    length: int


class _StaleError(Exception):
    """The index does not belong to the traces beside it. Never leaves this file."""


class RunIndex:
    """Answers questions about single samples without reading the whole trace.

    It is derived: brought up to date whenever it is asked, built anew where it is absent,
    damaged, of another version or of other traces, and kept in memory where it cannot be written.

    Args:
        directory: The run directory.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._path = directory / "index.sqlite"

    def lines(self, sample_id: str) -> list[tuple[Path, Line]]:
        """The lines of one sample's events, in order; empty for an unknown sample.

        Raises:
            TraceError: a line is damaged.
            StorageError: a trace cannot be read.
        """
        query = "SELECT file, number, offset, length FROM events WHERE sample_id = ? ORDER BY "
        query += "time, file, number"

        def look(database: sqlite3.Connection) -> list[tuple[Path, Line]]:
            places = [_Place(*row) for row in database.execute(query, (sample_id,))]
            return list(self._read(places, sample_id))

        found = self._ask(look)
        if not found:
            # A lost entry looks like an unknown sample: before that is said, the traces are read.
            found = self._look(_open_memory, look)
            if found:
                self._remove()
        return found

    def rows(self) -> list[IndexRow]:
        """One row a finished sample, by id.

        Raises:
            TraceError: a line is damaged.
            StorageError: a trace cannot be read.
        """
        query = "SELECT sample_id, outcome, reason, verdict, probability FROM samples ORDER BY 1"

        def look(database: sqlite3.Connection) -> list[IndexRow]:
            found = database.execute(query)
            return [
                IndexRow(name, outcome, reason, None if verdict is None else bool(verdict), share)
                for name, outcome, reason, verdict, share in found
            ]

        return self._ask(look)

    def _ask(self, look: Callable[[sqlite3.Connection], T]) -> T:
        """Ask the file as it is, else a new one, else one in memory."""
        try:
            try:
                return self._look(self._open_file, look)
            except (sqlite3.Error, _StaleError) as error:
                if _code(error) in _SURROUNDINGS:
                    raise
                self._remove()
                return self._look(self._open_file, look)
        except (sqlite3.Error, _StaleError, OSError):
            # A folder that cannot be written or a file in use: the answer is worth more.
            return self._look(_open_memory, look)

    def _look(
        self, connect: Callable[[], sqlite3.Connection], look: Callable[[sqlite3.Connection], T]
    ) -> T:
        with closing(connect()) as database:
            with _transaction(database):
                _prepare(database)
                self._update(database)
            return look(database)

    def _open_file(self) -> sqlite3.Connection:
        # Made by hand first: SQLite would let the umask decide who may read it.
        os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        return sqlite3.connect(self._path, timeout=_BUSY_S, isolation_level=None)

    def _remove(self) -> None:
        for suffix in ("", "-journal", "-wal", "-shm"):
            self._path.with_name(self._path.name + suffix).unlink(missing_ok=True)

    def _update(self, database: sqlite3.Connection) -> None:
        known = {row[0]: row[1:] for row in database.execute("SELECT * FROM traces")}
        files = trace_files(self._directory)
        if known.keys() - {path.name for path in files}:
            raise _StaleError
        for path in files:
            self._take_in(database, path, known.get(path.name))

    @staticmethod
    def _take_in(database: sqlite3.Connection, path: Path, known: tuple[Any, ...] | None) -> None:
        """Add what a trace holds beyond what is known of it."""
        size, lines = 0, 0
        if known is not None:
            size, lines, last_offset, last_hash = known
            if _hash(_slice(path, last_offset, size - last_offset)) != last_hash:
                raise _StaleError
        line = None
        for line in read_lines(path, offset=size, number=lines):
            _add(database, path.name, line)
        if line is not None:
            end = line.offset + line.length
            last = _hash(_slice(path, line.offset, line.length))
            database.execute(
                "INSERT OR REPLACE INTO traces VALUES (?, ?, ?, ?, ?)",
                (path.name, end, line.number + 1, line.offset, last),
            )

    def _read(self, places: list[_Place], sample_id: str) -> Iterator[tuple[Path, Line]]:
        for place in places:
            path = self._directory / place.file
            data = _slice(path, place.offset, place.length)
            try:
                raw = parse_line(data, path, place.number)
            except TraceError as error:
                raise _StaleError from error
            if raw.get("sample_id") != sample_id:
                raise _StaleError
            yield path, Line(place.number, place.offset, place.length, raw)


def _open_memory() -> sqlite3.Connection:
    return sqlite3.connect(":memory:", isolation_level=None)


def _prepare(database: sqlite3.Connection) -> None:
    """Make the tables of an empty index; refuse one of another version."""
    version = database.execute("PRAGMA user_version").fetchone()[0]
    if version == _VERSION:
        return
    if database.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
        raise _StaleError
    for statement in filter(str.strip, _SCHEMA.split(";")):
        database.execute(statement)
    database.execute(f"PRAGMA user_version = {_VERSION}")


@contextmanager
def _transaction(database: sqlite3.Connection) -> Iterator[None]:
    database.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        if database.in_transaction:
            database.execute("ROLLBACK")
        raise
    database.execute("COMMIT")


def _add(database: sqlite3.Connection, file: str, line: Line) -> None:
    sample_id, time = str(line.raw.get("sample_id", "")), str(line.raw.get("time", ""))
    if not sample_id:
        return
    database.execute(
        "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?)",
        (sample_id, time, file, line.number, line.offset, line.length),
    )
    if line.raw.get("event") != "sample_finished":
        return
    event = parse_event(line.raw)
    if isinstance(event, SampleFinished):
        judgment = event.judgment if event.outcome is Outcome.SCORED else None
        database.execute(
            "INSERT INTO samples VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
            "time = excluded.time, outcome = excluded.outcome, reason = excluded.reason, "
            "verdict = excluded.verdict, probability = excluded.probability "
            "WHERE excluded.time >= samples.time",
            (
                sample_id,
                time,
                str(event.outcome),
                event.reason,
                judgment and judgment.verdict,
                judgment and judgment.probability,
            ),
        )


def _slice(path: Path, offset: int, length: int) -> bytes:
    try:
        with path.open("rb") as file:
            file.seek(offset)
            return file.read(length)
    except OSError as error:
        raise StorageError(f"Cannot read: {error.strerror}", where=str(path)) from error


def _hash(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def _code(error: Exception) -> int:
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF
