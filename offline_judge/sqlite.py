"""Owns how an SQLite file that several processes share is brought into write-ahead logging."""

from __future__ import annotations

import sqlite3
import time

_BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_PAUSE_S = 0.05


def use_wal(connection: sqlite3.Connection, *, patience_s: float) -> None:
    """Turn on the write-ahead log, which the file then keeps.

    Two processes that open a new file at the same moment both want it for themselves, and SQLite
    refuses one of them at once, whatever time-out its connection has; so waiting is done here.

    Args:
        connection: Outside any transaction.
        patience_s: Seconds to wait for others.

    Raises:
        sqlite3.OperationalError: others kept the file busy all that time, or it cannot be written.
    """
    until = time.monotonic() + patience_s
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF not in _BUSY or time.monotonic() >= until:
                raise
            time.sleep(_PAUSE_S)
        else:
            return
