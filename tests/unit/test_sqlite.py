"""Opening one database from several processes at the same moment."""

import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from offline_judge.sqlite import use_wal


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(
        tmp_path / "shared.sqlite", isolation_level=None, check_same_thread=False
    )
    connection.execute("CREATE TABLE t (x)")
    connection.execute("BEGIN EXCLUSIVE")
    yield connection
    connection.close()


@pytest.fixture
def late(tmp_path: Path, holder: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(tmp_path / "shared.sqlite", timeout=0, isolation_level=None)
    yield connection
    connection.close()


def test_it_waits_until_the_other_lets_go(
    holder: sqlite3.Connection, late: sqlite3.Connection
) -> None:
    refused = threading.Event()

    def let_go() -> None:
        refused.wait(30)
        holder.execute("ROLLBACK")

    other = threading.Thread(target=let_go)
    other.start()
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        use_wal(late, patience_s=0)
    refused.set()
    use_wal(late, patience_s=30)
    other.join(30)
    assert late.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_what_waiting_does_not_cure_is_raised_at_once(tmp_path: Path) -> None:
    path = tmp_path / "fixed.sqlite"
    sqlite3.connect(path).execute("CREATE TABLE t (x)").connection.close()
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True, isolation_level=None)
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        use_wal(connection, patience_s=1e9)
    connection.close()
