"""Deleting from the record what is old or comes from somewhere, and all that hangs on it."""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from offline_judge.domain.record import Pruned
from offline_judge.errors import StorageError
from offline_judge.retrieval.evidence.record import Record
from offline_judge.retrieval.evidence.terms import passage_terms

# An answer of which one hit is missing would be a wrong answer, so it goes as a whole; a passage
# goes when it stands nowhere else.
_DOOMED = """
CREATE TEMP TABLE doomed_places AS SELECT places.id FROM places
  JOIN documents ON document = documents.id WHERE places.found_at <= :until
  AND (:source = '' OR source = :source);
CREATE TEMP TABLE doomed_queries AS SELECT id FROM queries WHERE found_at <= :until
  AND (:source = '' OR provider || ':' || json_extract(identity, '$.name') = :source)
  UNION SELECT query FROM results WHERE place IN (SELECT id FROM doomed_places);
CREATE TEMP TABLE doomed_passages AS SELECT id FROM passages WHERE NOT EXISTS (SELECT 1
  FROM places WHERE passage = passages.id AND id NOT IN (SELECT id FROM doomed_places));
CREATE TEMP TABLE doomed_documents AS SELECT id FROM documents WHERE NOT EXISTS (SELECT 1
  FROM places WHERE document = documents.id AND id NOT IN (SELECT id FROM doomed_places))
"""
_ALWAYS = "9999"
_LISTS = ("queries", "places", "passages", "documents")


def prune(
    record: Record, *, older_than: int | None = None, source: str = "", dry_run: bool = False
) -> Pruned:
    """Delete what was found the last time at least `older_than` days ago, and from `source`.

    Both limits together delete what passes both. Vectors go with their passages; an index of
    vectors is told by a count and follows when it is next opened.

    Args:
        record: Where.
        older_than: Days, at least 0; None for any age.
        source: As passages name it, "" for any.
        dry_run: Only say what would go.

    Raises:
        StorageError: the record cannot be read or written; then nothing is deleted.
    """
    until = _ALWAYS if older_than is None else _days_ago(older_than)
    before = record_size(record.folder)
    work = record.database.reading() if dry_run else record.database.writing()
    with work as connection:
        try:
            counts = _choose(connection, until, source)
            if not dry_run:
                _delete(connection)
        finally:
            for name in _LISTS:
                connection.execute(f"DROP TABLE IF EXISTS temp.doomed_{name}")
    if dry_run:
        return Pruned(True, *counts)
    _shrink(record)
    return Pruned(False, *counts, freed=max(0, before - record_size(record.folder)))


def record_size(folder: Path) -> int:
    """Bytes of the database and its log."""
    total = 0
    for path in folder.glob("record.sqlite*"):
        with suppress(OSError):
            total += path.stat().st_size
    return total


def _choose(
    connection: sqlite3.Connection, until: str, source: str
) -> tuple[int, int, int, int, int]:
    """List what goes; numbers of queries, documents, passages, vectors, and passages left."""
    for statement in _DOOMED.split(";\n"):
        connection.execute(statement, {"until": until, "source": source})

    def one(sql: str) -> int:
        return int(connection.execute(sql).fetchone()[0])

    passages = one("SELECT count(*) FROM doomed_passages")
    return (
        one("SELECT count(*) FROM doomed_queries"),
        one("SELECT count(*) FROM doomed_documents"),
        passages,
        one("SELECT count(*) FROM vectors WHERE passage IN (SELECT id FROM doomed_passages)"),
        one("SELECT count(*) FROM passages") - passages,
    )


def _delete(connection: sqlite3.Connection) -> None:
    rows = connection.execute(
        "SELECT id, title, text FROM passages WHERE id IN (SELECT id FROM doomed_passages)"
    )
    for number, title, text in rows:
        # A full-text index without contents has to be told what it is to forget.
        connection.execute(
            "INSERT INTO words (words, rowid, terms) VALUES ('delete', ?, ?)",
            (number, passage_terms(title, text)),
        )
    for name in _LISTS:
        connection.execute(f"DELETE FROM {name} WHERE id IN (SELECT id FROM doomed_{name})")
    # Whoever keeps vectors or places in memory, or an index of them, looks at this count.
    connection.execute("UPDATE meta SET value = value + 1 WHERE name = 'deletions'")


def _shrink(record: Record) -> None:
    """Give the room back, and overwrite nothing that others read; it can wait for another time."""
    with suppress(StorageError):
        record.database.rows("VACUUM")
        record.database.rows("PRAGMA wal_checkpoint(TRUNCATE)")


def _days_ago(days: int) -> str:
    try:
        return (datetime.now(UTC) - timedelta(days=days)).strftime("%Y-%m-%dT%H:%M:%SZ")
    except OverflowError:
        return ""
