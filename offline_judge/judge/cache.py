"""Owns the completion cache: answers that were accepted once, found again by content."""

from __future__ import annotations

import json
import logging
import os
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from offline_judge.domain.base import canonical_json
from offline_judge.sqlite import use_wal

_LOGGER = logging.getLogger(__name__)
_BUSY_S = 2.0
_NOT_OPENED = "The completion cache cannot be opened and serves this run only: {}"
_SCHEMA = "CREATE TABLE IF NOT EXISTS completions (key TEXT PRIMARY KEY, value TEXT NOT NULL)"


class CompletionCache:
    """A store of JSON values by content hash, shared by any number of processes.

    It is only a cache: no fault of its file ever fails a run. A damaged file is set aside under
    another name and a new one is begun; a file that cannot be opened, and a value that cannot be
    written, are kept in memory for this process. Each is said once, by `warn`.

    Args:
        path: The database file, readable by its owner only; None keeps all in memory.
        warn: Takes one sentence for people.
    """

    def __init__(
        self,
        path: Path | None,
        *,
        warn: Callable[[str], None] = _LOGGER.warning,
    ) -> None:
        self._path = path
        self._warn = warn
        self._warned: set[str] = set()
        self._memory: dict[str, str] = {}
        self._database: sqlite3.Connection | None = None
        if path is not None:
            self._database = self._open(path)

    def get(self, key: str) -> Any:
        """The value kept under a key, None where there is none."""
        found = self._memory.get(key)
        if found is None and self._database is not None:
            try:
                row = self._database.execute(
                    "SELECT value FROM completions WHERE key = ?", (key,)
                ).fetchone()
            except sqlite3.DatabaseError as error:
                self._failed(error)
                return None
            found = row[0] if row else None
        try:
            return None if found is None else json.loads(found)
        except (TypeError, ValueError):
            return None

    def put(self, key: str, value: Any) -> None:
        """Keep a JSON value; an earlier one of the same key is replaced."""
        text = canonical_json(value)
        if self._database is None:
            self._memory[key] = text
            return
        try:
            with self._database:
                self._database.execute(
                    "INSERT OR REPLACE INTO completions VALUES (?, ?)", (key, text)
                )
        except sqlite3.DatabaseError as error:
            self._memory[key] = text
            self._failed(error)

    def close(self) -> None:
        """Let go of the file. Safe to call twice; afterwards the cache is empty."""
        self._memory.clear()
        if self._database is not None:
            self._database.close()
            self._database = None

    def _open(self, path: Path) -> sqlite3.Connection | None:
        try:
            return _connect(path)
        except (sqlite3.OperationalError, OSError) as error:
            self._say("open", _NOT_OPENED.format(error))
        except sqlite3.DatabaseError as error:
            return self._replace(path, error)
        return None

    def _failed(self, error: sqlite3.DatabaseError) -> None:
        """Deal with a fault in use: busy and full pass by, damage needs a new file."""
        if isinstance(error, sqlite3.OperationalError):
            self._say("write", f"The completion cache cannot be used for now: {error}")
            return
        if self._database is not None and self._path is not None:
            self._database.close()
            self._database = self._replace(self._path, error)

    def _replace(self, path: Path, error: Exception) -> sqlite3.Connection | None:
        aside = _free_name(path)
        self._say("damage", f"The completion cache is damaged ({error}); set aside as {aside}")
        try:
            with suppress(FileNotFoundError):  # another process was faster
                path.rename(aside)
            for suffix in ("-wal", "-shm"):
                path.with_name(path.name + suffix).unlink(missing_ok=True)
            return _connect(path)
        except (sqlite3.DatabaseError, OSError) as again:
            self._say("open", _NOT_OPENED.format(again))
            return None

    def _say(self, kind: str, message: str) -> None:
        if kind not in self._warned:
            self._warned.add(kind)
            self._warn(message)


def _connect(path: Path) -> sqlite3.Connection:
    path.parent.mkdir(parents=True, exist_ok=True)
    # The answers tell what was judged, so the file is private from its first byte.
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    database = sqlite3.connect(path, timeout=_BUSY_S, check_same_thread=False)
    try:
        use_wal(database, patience_s=_BUSY_S)
        # Losing the last answers to a power cut costs only their repetition.
        database.execute("PRAGMA synchronous = NORMAL")
        database.execute(_SCHEMA)
        database.execute("SELECT value FROM completions LIMIT 1").fetchone()
    except BaseException:
        database.close()
        raise
    return database


def _free_name(path: Path) -> Path:
    number = 1
    while (aside := path.with_name(f"{path.name}.damaged-{number}")).exists():
        number += 1
    return aside
