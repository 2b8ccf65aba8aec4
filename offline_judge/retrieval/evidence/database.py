"""Opening the record's database, its transactions, and its faults in words."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from offline_judge.errors import StorageError
from offline_judge.retrieval.evidence.model import day_number
from offline_judge.retrieval.evidence.schema import (
    APPLICATION_ID,
    MIGRATIONS,
    SCHEMA,
    VERSION,
    WORDS,
)
from offline_judge.sqlite import use_wal

_BUSY_S = 30.0
_FULL = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR})
_BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_CLOSED = frozenset({sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_READONLY})


class Database:
    """One SQLite file in WAL mode, open in this process; any thread may use it, one at a time.

    Args:
        path: The file; made where absent, for its owner only.

    Raises:
        StorageError: it cannot be opened, is damaged, foreign, or of a newer program.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.RLock()
        with self.faults():
            self._connection = self._open()

    def close(self) -> None:
        """Let go of the file. Safe to call twice."""
        with self._lock, suppress(sqlite3.Error):
            self._connection.close()

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """All rows of a query.

        Raises:
            StorageError: the record cannot be read.
        """
        with self._lock, self.faults():
            return self._connection.execute(sql, values).fetchall()

    def one(self, sql: str, values: Sequence[Any] = ()) -> Any:
        """The first value of the first row, None where there is no row.

        Raises:
            StorageError: the record cannot be read.
        """
        with self._lock, self.faults():
            row = self._connection.execute(sql, values).fetchone()
        return None if row is None else row[0]

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction that is kept whole or not at all.

        Raises:
            StorageError: it could not be kept: the disk is full, the record damaged or busy.
        """
        with self._lock, self.faults(), transaction(self._connection):
            yield self._connection

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Several queries that see one state of the record.

        Raises:
            StorageError: the record cannot be read.
        """
        with self._lock, self.faults(), transaction(self._connection, "DEFERRED"):
            yield self._connection

    @contextmanager
    def faults(self) -> Iterator[None]:
        """Turn what SQLite and the system raise into errors with a place and a remedy."""
        try:
            yield
        except sqlite3.Error as error:
            raise self._fault(error) from error
        except OSError as error:
            raise StorageError(
                f"The evidence record cannot be opened: {error.strerror}", where=str(self.path)
            ) from error

    def _open(self) -> sqlite3.Connection:
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        # What was searched is private, so the file is from its first byte.
        os.close(os.open(self.path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
        connection = sqlite3.connect(
            self.path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False
        )
        try:
            connection.execute("PRAGMA foreign_keys = ON")
            # Dates mean in SQL what they mean in memory.
            connection.create_function("day_number", 1, day_number, deterministic=True)
            if _identity(connection) != (APPLICATION_ID, VERSION):
                self._settle(connection)
            # A commit outlives the process at once, and a power cut but for the last instant.
            connection.execute("PRAGMA synchronous = NORMAL")
        except BaseException:
            connection.close()
            raise
        return connection

    def _settle(self, connection: sqlite3.Connection) -> None:
        """Make the tables of a new record, or bring an older one up to date."""
        with transaction(connection):
            application, version = _identity(connection)
            empty = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0
            if empty and not application:
                _run(connection, SCHEMA)
                connection.execute(WORDS)
                connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                version = VERSION
            elif application != APPLICATION_ID:
                raise StorageError(
                    "This file is no evidence record; it is left as it is.",
                    where=str(self.path),
                    remedy=f"Move it to another place: {self._aside()}",
                )
            self._migrate(connection, version)
        use_wal(connection, patience_s=_BUSY_S)

    def _migrate(self, connection: sqlite3.Connection, version: int) -> None:
        if version > VERSION:
            raise StorageError(
                f"A newer program wrote this evidence record (version {version}, not {VERSION}).",
                where=str(self.path),
                remedy="Update this program, or use another data directory.",
            )
        for step in range(version, VERSION):
            MIGRATIONS[step](connection)
        connection.execute(f"PRAGMA user_version = {VERSION}")

    def _fault(self, error: sqlite3.Error) -> StorageError:
        code = int(getattr(error, "sqlite_errorcode", 0)) & 0xFF
        place = str(self.path)
        if code in _FULL:
            return StorageError(
                f"The evidence record cannot be written: {error}; what it held before is kept.",
                where=place,
                remedy="Make room on that disk.",
            )
        if code in _BUSY:
            return StorageError(
                f"Other processes have kept the evidence record busy for {_BUSY_S:.0f} s.",
                where=place,
                remedy="Try again when they are done.",
            )
        if code in _CLOSED:
            return StorageError(
                f"The evidence record cannot be opened: {error}",
                where=place,
                remedy="Look at who may read and write it.",
            )
        return StorageError(
            f"The evidence record is damaged: {error}. Nothing of it is deleted.",
            where=place,
            remedy=f"Move it aside, and a new one is begun: {self._aside()} "
            "(`sqlite3 FILE .recover` reads what is left of it).",
        )

    def _aside(self) -> str:
        return f"mv '{self.path}' '{self.path}.old'"


@contextmanager
def transaction(connection: sqlite3.Connection, kind: str = "IMMEDIATE") -> Iterator[None]:
    """A block that is kept whole or not at all."""
    connection.execute(f"BEGIN {kind}")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # A full disk may have ended the transaction already.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _identity(connection: sqlite3.Connection) -> tuple[int, int]:
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    return application, connection.execute("PRAGMA user_version").fetchone()[0]


def _run(connection: sqlite3.Connection, script: str) -> None:
    """Statement by statement: `executescript` would end the transaction."""
    for statement in script.split(";\n"):
        if statement.strip():
            connection.execute(statement)
