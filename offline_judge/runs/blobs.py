"""Owns blobs.sqlite: large texts of a run by the hash of their content."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from offline_judge.domain.base import text_hash
from offline_judge.errors import StorageError
from offline_judge.runs.atomic import full_error, storage_error, sync
from offline_judge.sqlite import use_wal

_BUSY_S = 10.0
_SCHEMA = "CREATE TABLE IF NOT EXISTS blobs (hash TEXT PRIMARY KEY, content BLOB NOT NULL)"


class BlobStore:
    """Texts by SHA-256; what `put` took survives the death of the process at once.

    Use from one thread at a time. `sync` makes it survive a power cut too.

    Args:
        path: The database; made where absent, unless `readonly`.
        readonly: Only read; then a missing file is an error of `get`.
    """

    def __init__(self, path: Path, *, readonly: bool = False) -> None:
        self._path = path
        self._readonly = readonly
        self._database: sqlite3.Connection | None = None
        self._unsynced = False

    def put(self, texts: Iterable[str]) -> list[str]:
        """Keep texts, all or none; those that are there already cost nothing.

        Returns:
            Their hashes, in order.

        Raises:
            StorageError: they could not be kept.
        """
        rows = [(text_hash(text), text.encode("utf-8", "surrogatepass")) for text in texts]
        if not rows:
            return []
        try:
            database = self._open()
            with database:
                before = database.total_changes
                database.executemany("INSERT OR IGNORE INTO blobs VALUES (?, ?)", rows)
                self._unsynced |= database.total_changes > before
        except sqlite3.Error as error:
            raise self._error(error) from error
        return [name for name, _ in rows]

    def get(self, name: str) -> str:
        """The text of a hash.

        Raises:
            StorageError: there is no such text, or the file is damaged.
        """
        try:
            row = self._open().execute("SELECT content FROM blobs WHERE hash = ?", (name,))
            found = row.fetchone()
        except sqlite3.Error as error:
            raise self._error(error) from error
        if found is None:
            raise StorageError(f"No text with hash {name}.", where=str(self._path))
        return self._checked(name, found[0])

    def sync(self) -> None:
        """Make everything kept so far durable.

        Raises:
            StorageError: the device failed to take it.
        """
        if not self._unsynced:
            return
        # What is committed and not yet in the database proper is in its write-ahead log; what
        # left the log for the database was synced by SQLite on the way.
        log = self._path.with_name(self._path.name + "-wal")
        try:
            descriptor = os.open(log, os.O_RDONLY | os.O_CLOEXEC)
            try:
                sync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise storage_error(error, log, run_id=self._path.parent.name) from error
        self._unsynced = False

    def close(self) -> None:
        """Let go of the file. Safe to call twice."""
        database, self._database = self._database, None
        if database is not None:
            with suppress(sqlite3.Error):
                database.close()

    def __enter__(self) -> BlobStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open(self) -> sqlite3.Connection:
        if self._database is None:
            self._database = self._open_readonly() if self._readonly else self._open_writable()
        return self._database

    def _open_writable(self) -> sqlite3.Connection:
        # Made by hand first: SQLite would let the umask decide who may read it.
        try:
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        except OSError as error:
            raise storage_error(error, self._path, run_id=self._path.parent.name) from error
        database = _connect(self._path, "mode=rw")
        try:
            use_wal(database, patience_s=_BUSY_S)
            database.execute("PRAGMA synchronous = NORMAL")
            database.execute(_SCHEMA)
        except sqlite3.Error:
            database.close()
            raise
        return database

    def _open_readonly(self) -> sqlite3.Connection:
        if not self._path.exists():
            raise StorageError("The run's large texts are missing.", where=str(self._path))
        # Opened for writing where that is allowed: such a connection leaves no files behind. On a
        # medium that cannot be written SQLite has no place for its log's index.
        for option in ("mode=rw", "immutable=1"):
            database = _connect(self._path, option)
            try:
                database.execute("PRAGMA query_only = ON")
                database.execute("SELECT 1 FROM blobs LIMIT 1")
            except sqlite3.Error as error:
                database.close()
                if option == "immutable=1" or not isinstance(error, sqlite3.OperationalError):
                    raise
            else:
                return database
        raise AssertionError("one of the two ways returns or raises")

    def _checked(self, name: str, content: object) -> str:
        try:
            text = bytes(content).decode("utf-8", "surrogatepass")  # type: ignore[call-overload]  # a damaged row may hold anything
        except (TypeError, ValueError):
            text = None
        if text is None or text_hash(text) != name:
            raise StorageError(f"The text with hash {name} is damaged.", where=str(self._path))
        return str(text)

    def _error(self, error: sqlite3.Error) -> StorageError:
        run_id = self._path.parent.name
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code == sqlite3.SQLITE_FULL:
            return full_error(self._path, run_id=run_id)
        remedy = ""
        if code == sqlite3.SQLITE_IOERR and not self._readonly:
            # SQLite says no more than that, also where a quota or a limit on sizes is reached.
            remedy = f"Check the disk and its free space, then: offline-judge resume {run_id}"
        return StorageError(
            f"Cannot use the run's large texts: {error}", where=str(self._path), remedy=remedy
        )


def _connect(path: Path, option: str) -> sqlite3.Connection:
    address = f"{path.absolute().as_uri()}?{option}"
    # A run opened in one thread may be worked on in another (in a notebook it is), never in two.
    return sqlite3.connect(address, uri=True, timeout=_BUSY_S, check_same_thread=False)
