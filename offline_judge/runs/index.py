"""Owns index.sqlite: where each sample's events stand in the traces, and how each ended."""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from offline_judge.domain.run_rows import IndexRow, LogLine, RowQuery
from offline_judge.errors import StorageError, TraceError
from offline_judge.runs.index_rows import (
    VERSION,
    Intake,
    RunBrief,
    RunMaterial,
    Span,
    brief,
    log,
    make_tables,
    material,
    neighbour,
    page,
    spans_of,
)
from offline_judge.runs.lines import Line, parse_line, read_lines
from offline_judge.runs.reader import trace_files

T = TypeVar("T")

Told = Callable[[int, int], bool]
"""Takes the bytes of the traces that are taken in and all of them; false ends the work."""

_BUSY_S = 10.0
_AT_ONCE = 20_000
"""Lines taken in between two commits: what is done then stays done."""
_ALL = 2**62
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


class _EnoughError(Exception):
    """Whoever was told of the work wants no more of it. Never leaves this file."""


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

        def look(database: sqlite3.Connection) -> list[tuple[Path, Line]]:
            lines = list(self._read(spans_of(database, sample_id), sample_id))
            lines.sort(key=lambda one: (str(one[1].raw.get("time", "")), one[0], one[1].number))
            return lines

        found = self._ask(look)
        if not found:
            # A lost entry looks like an unknown sample: before that is said, the traces are read.
            found = self._look(_open_memory, look)
            if found:
                self._remove()
        return found

    def page(self, query: RowQuery) -> tuple[list[IndexRow], int]:
        """Samples taken up, and how many there are without the query's offset and limit.

        Raises:
            TraceError: a line is damaged.
            StorageError: a trace cannot be read.
        """
        return self._ask(lambda database: page(database, query))

    def rows(self) -> list[IndexRow]:
        """One row a sample taken up, by id; raises as `page`."""
        return self.page(RowQuery(limit=_ALL, order="id"))[0]

    def log(self, limit: int) -> list[LogLine]:
        """What a reader of the run must know, the last lines, oldest first; raises as `page`."""
        return self._ask(lambda database: log(database, limit))

    def neighbour(self, sample_id: str, query: RowQuery) -> str | None:
        """The next sample behind one, as they were taken up, of those that a query names.

        With `reverse` the one before; None where there is none. Raises as `page`.
        """
        return self._ask(lambda database: neighbour(database, sample_id, query))

    def brief(self) -> RunBrief:
        """Where the run stands; raises as `page`."""
        return self._ask(brief)

    def material(self) -> RunMaterial:
        """What figures of the run are made of; raises as `page`."""
        return self._ask(material)

    def behind(self) -> int:
        """Bytes of the traces that are not taken in yet, without taking them in.

        Raises:
            StorageError: a trace cannot be read.
        """
        whole = sum(path.stat().st_size for path in trace_files(self._directory))
        if not self._path.is_file():
            return whole
        try:
            with closing(sqlite3.connect(f"file:{self._path}?mode=ro", uri=True)) as database:
                done = database.execute("SELECT coalesce(sum(size), 0) FROM traces").fetchone()[0]
        except sqlite3.Error:
            return whole
        return max(0, whole - int(done))

    def update(self, told: Told) -> bool:
        """Bring the index up to date; what is done stays done, so that it can be gone on with.

        Returns:
            Whether it is up to date; false where `told` ended the work.

        Raises:
            TraceError: a line is damaged.
            StorageError: a trace cannot be read.
        """
        try:
            self._ask(lambda _: None, told)
        except _EnoughError:
            return False
        return True

    def _ask(
        self, look: Callable[[sqlite3.Connection], T], told: Told = lambda _done, _of: True
    ) -> T:
        """Ask the file as it is, else a new one, else one in memory."""
        try:
            try:
                return self._look(self._open_file, look, told)
            except (sqlite3.Error, _StaleError) as error:
                if _code(error) in _SURROUNDINGS:
                    raise
                self._remove()
                return self._look(self._open_file, look, told)
        except (sqlite3.Error, _StaleError, OSError):
            # A folder that cannot be written or a file in use: the answer is worth more.
            return self._look(_open_memory, look, told)

    def _look(
        self,
        connect: Callable[[], sqlite3.Connection],
        look: Callable[[sqlite3.Connection], T],
        told: Told = lambda _done, _of: True,
    ) -> T:
        with closing(connect()) as database:
            with _transaction(database):
                _prepare(database)
                complete = self._update(database)
            while not complete:
                if not told(*self._standing(database)):
                    raise _EnoughError
                with _transaction(database):
                    complete = self._update(database)
            return look(database)

    def _open_file(self) -> sqlite3.Connection:
        # Made by hand first: SQLite would let the umask decide who may read it.
        os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        return sqlite3.connect(self._path, timeout=_BUSY_S, isolation_level=None)

    def _remove(self) -> None:
        for suffix in ("", "-journal", "-wal", "-shm"):
            self._path.with_name(self._path.name + suffix).unlink(missing_ok=True)

    def _update(self, database: sqlite3.Connection) -> bool:
        """Take in what the traces hold beyond what is known of them; false where more is left."""
        known = {row[0]: row[1:] for row in database.execute("SELECT * FROM traces")}
        files = trace_files(self._directory)
        if known.keys() - {path.name for path in files}:
            raise _StaleError
        return all(self._take_in(database, path, known.get(path.name)) for path in files)

    @staticmethod
    def _take_in(database: sqlite3.Connection, path: Path, known: tuple[Any, ...] | None) -> bool:
        """Take in some lines of one trace; false where that may not have been all."""
        size, lines = 0, 0
        if known is not None:
            size, lines, last_offset, last_hash = known
            if _hash(_slice(path, last_offset, size - last_offset)) != last_hash:
                raise _StaleError
        line = None
        intake = Intake(database, path.name)
        for line in islice(read_lines(path, offset=size, number=lines), _AT_ONCE):
            intake.add(line)
        intake.finish()
        if line is None:
            return True
        end = line.offset + line.length
        last = _hash(_slice(path, line.offset, line.length))
        database.execute(
            "INSERT OR REPLACE INTO traces VALUES (?, ?, ?, ?, ?)",
            (path.name, end, line.number + 1, line.offset, last),
        )
        return line.number + 1 - lines < _AT_ONCE

    def _standing(self, database: sqlite3.Connection) -> tuple[int, int]:
        done = database.execute("SELECT coalesce(sum(size), 0) FROM traces").fetchone()[0]
        return done, sum(path.stat().st_size for path in trace_files(self._directory))

    def _read(self, spans: list[Span], sample_id: str) -> Iterator[tuple[Path, Line]]:
        for span in spans:
            path, offset = self._directory / span.file, span.offset
            data = _slice(path, span.offset, span.length)
            if not data.endswith(b"\n"):
                raise _StaleError
            for number, text in enumerate(data.splitlines(keepends=True), span.number):
                try:
                    raw = parse_line(text, path, number)
                except TraceError as error:
                    raise _StaleError from error
                if raw.get("sample_id", "") != sample_id:
                    raise _StaleError
                yield path, Line(number, offset, len(text), raw)
                offset += len(text)


def _open_memory() -> sqlite3.Connection:
    return sqlite3.connect(":memory:", isolation_level=None)


def _prepare(database: sqlite3.Connection) -> None:
    """Make the tables of an empty index; refuse one of another version."""
    version = database.execute("PRAGMA user_version").fetchone()[0]
    if version == VERSION:
        return
    if database.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
        raise _StaleError
    make_tables(database)


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
