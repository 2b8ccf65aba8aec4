"""The record of evidence: documents, passages, queries and what they found, in SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from offline_judge.domain.base import canonical_json, content_hash
from offline_judge.domain.evidence import Passage, SearchHit
from offline_judge.retrieval.evidence.database import Database
from offline_judge.retrieval.evidence.model import Answer, Question, RecordStats
from offline_judge.retrieval.evidence.schema import WORDS
from offline_judge.retrieval.evidence.terms import TERMS, passage_terms

FILE = "record.sqlite"
PLACE = """
SELECT places.passage_id, documents.document_id, documents.title, passages.text, places.start,
  places.stop, documents.source, documents.url, documents.date
"""


class Record:
    """All that searches have found so far; any number of processes may read and write it.

    A passage is kept once by its content, whoever finds it and however often; a query by its key,
    with the hits of its first ranks. Failures are never kept, an empty result is.

    Args:
        folder: Where `record.sqlite` lies; made where absent.

    Raises:
        StorageError: the record cannot be opened, is damaged, foreign, or of a newer program.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.database = Database(folder / FILE)
        if self.database.one("SELECT value FROM meta WHERE name = 'terms'") != TERMS:
            self.rebuild_words()

    def close(self) -> None:
        """Let go of the file. Safe to call twice."""
        self.database.close()

    def look_up(self, question: Question, *, limit: int, offset: int = 0) -> Answer | None:
        """The hits of ranks `offset + 1` to `offset + limit`, None where they are not known.

        What is older than the question's age limit is not known.

        Raises:
            StorageError: the record cannot be read.
        """
        with self.database.reading() as connection:
            row = connection.execute(
                "SELECT id, depth, found_at FROM queries WHERE key = ?", (question.key,)
            ).fetchone()
            if row is None or row[2] < oldest_allowed(question.scope.max_age_days):
                return None
            number, depth, found_at = row
            hits = read_hits(connection, number, found_at)
        # Fewer hits than were asked for then: there are no more of them.
        if offset + limit > depth and len(hits) == depth:
            return None
        return Answer(hits[offset : offset + limit], found_at)

    def same_words(
        self, question: Question, not_sources: Sequence[str] = ()
    ) -> tuple[SearchHit, ...]:
        """What the same words in the same scope found the last time they found something.

        Whoever was asked: a search that came to nothing, or only to passages from `not_sources`,
        hides none before it.

        Raises:
            StorageError: the record cannot be read.
        """
        scope = question.scope
        counts = f"source NOT IN ({','.join('?' * len(not_sources))})"
        with self.database.reading() as connection:
            row = connection.execute(
                "SELECT id, found_at FROM queries WHERE normal = ? AND locale = ? "
                "AND date_from = ? AND date_to = ? AND found_at >= ? AND EXISTS "
                "(SELECT 1 FROM results JOIN places ON place = places.id JOIN documents "
                f"ON document = documents.id WHERE results.query = queries.id AND {counts}) "
                "ORDER BY found_at DESC, id DESC LIMIT 1",
                (
                    question.normal,
                    scope.locale,
                    scope.date_from,
                    scope.date_to,
                    oldest_allowed(scope.max_age_days),
                    *not_sources,
                ),
            ).fetchone()
            hits = read_hits(connection, *row) if row else ()
        return tuple(hit for hit in hits if hit.passage.source not in not_sources)

    def keep(
        self, question: Question, hits: Sequence[SearchHit], *, limit: int, offset: int = 0
    ) -> None:
        """Record what a provider answered, whole or not at all.

        A continuation (`offset` above 0) is joined to the ranks before it, and let go where they
        are not known.

        Raises:
            StorageError: it could not be written; nothing of it is kept.
        """
        found_at = utc_now()
        with self.database.writing() as connection:
            number = _query(connection, question, limit, offset, found_at)
            if number is None:
                return
            for rank, hit in enumerate(hits, offset + 1):
                place = _place(connection, hit.passage, found_at)
                connection.execute(
                    "INSERT INTO results VALUES (?, ?, ?, ?)", (number, rank, place, hit.score)
                )

    def add_passages(self, passages: Iterable[Passage]) -> None:
        """Record passages that no query found, all or none.

        Raises:
            StorageError: they could not be written.
        """
        found_at = utc_now()
        with self.database.writing() as connection:
            for passage in passages:
                _place(connection, passage, found_at)

    def rebuild_words(self) -> None:
        """Build the full-text index anew from the passages.

        Raises:
            StorageError: it could not be written; the index is what it was.
        """
        with self.database.writing() as connection:
            connection.execute("DROP TABLE IF EXISTS words")
            connection.execute(WORDS)
            # Read by the same transaction that writes, so no passage is missed.
            for number, title, text in connection.execute("SELECT id, title, text FROM passages"):
                index_words(connection, number, title, text)
            connection.execute("INSERT OR REPLACE INTO meta VALUES ('terms', ?)", (TERMS,))

    def stats(self) -> RecordStats:
        """Counts, sources, age and size.

        Raises:
            StorageError: the record cannot be read.
        """
        with self.database.reading() as connection:

            def counts(sql: str) -> dict[str, int]:
                return dict(connection.execute(sql).fetchall())

            def one(sql: str) -> Any:
                return connection.execute(sql).fetchone()[0]

            return RecordStats(
                queries=one("SELECT count(*) FROM queries"),
                documents=one("SELECT count(*) FROM documents"),
                passages=one("SELECT count(*) FROM passages"),
                vectors=counts(
                    "SELECT embedder || '/' || dimension, count(*) FROM spaces "
                    "JOIN vectors ON space = spaces.id GROUP BY spaces.id ORDER BY 1"
                ),
                sources=counts(
                    "SELECT source, count(DISTINCT passage) FROM places "
                    "JOIN documents ON document = documents.id GROUP BY source ORDER BY 2 DESC, 1"
                ),
                first=one("SELECT coalesce(min(found_at), '') FROM queries"),
                last=one("SELECT coalesce(max(found_at), '') FROM queries"),
                size=one("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"),
            )


def utc_now() -> str:
    """Now, UTC, ISO 8601 to the second."""
    return _stamp(datetime.now(UTC))


def oldest_allowed(max_age_days: int) -> str:
    """The time before which nothing may have been found; "" without a limit."""
    if max_age_days <= 0:
        return ""
    try:
        return _stamp(datetime.now(UTC) - timedelta(days=max_age_days))
    except OverflowError:
        return ""


def read_hits(connection: sqlite3.Connection, query: int, found_at: str) -> tuple[SearchHit, ...]:
    """The recorded hits of a query, by rank."""
    rows = connection.execute(
        f"{PLACE}, results.rank, results.score FROM results JOIN places ON place = places.id "
        "JOIN passages ON passage = passages.id JOIN documents ON document = documents.id "
        "WHERE query = ? ORDER BY rank",
        (query,),
    )
    return tuple(
        SearchHit(rank=row[9], score=row[10], passage=to_passage(row), found_at=found_at)
        for row in rows
    )


def to_passage(row: Sequence[Any]) -> Passage:
    """A passage from the columns of `PLACE`."""
    names = ("id", "document_id", "title", "text", "start", "end", "source", "url", "date")
    return Passage(**dict(zip(names, row[: len(names)], strict=True)))


def index_words(connection: sqlite3.Connection, number: int, title: str, text: str) -> None:
    """Make a passage findable by its words."""
    terms = passage_terms(title, text)
    connection.execute("INSERT INTO words (rowid, terms) VALUES (?, ?)", (number, terms))


def _query(
    connection: sqlite3.Connection, question: Question, limit: int, offset: int, found_at: str
) -> int | None:
    """The number of the query whose hits from `offset` on are to be written; None to let go."""
    row = connection.execute(
        "SELECT id, depth FROM queries WHERE key = ?", (question.key,)
    ).fetchone()
    if offset:
        if row is None or row[1] != offset:
            return None
        connection.execute("UPDATE queries SET depth = ? WHERE id = ?", (offset + limit, row[0]))
        return int(row[0])
    if row is not None:
        connection.execute("DELETE FROM queries WHERE id = ?", (row[0],))
    scope = question.scope
    values = (
        question.key,
        question.provider,
        canonical_json(question.identity),
        question.query.encode("utf-8", "replace").decode(),
        question.normal,
        scope.locale,
        scope.date_from,
        scope.date_to,
        scope.max_age_days,
        limit,
        found_at,
    )
    return connection.execute(
        "INSERT INTO queries (key, provider, identity, query, normal, locale, date_from, date_to, "
        "max_age_days, depth, found_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        values,
    ).lastrowid


def _place(connection: sqlite3.Connection, passage: Passage, found_at: str) -> int:
    """The number of the place where a passage stands; told that it was found again now."""
    passage = _writable(passage)
    key = content_hash(passage.model_dump(mode="json"))
    row = connection.execute("SELECT id FROM places WHERE key = ?", (key,)).fetchone()
    if row is not None:
        connection.execute("UPDATE places SET found_at = ? WHERE id = ?", (found_at, row[0]))
        return int(row[0])
    text = _passage(connection, passage, found_at)
    document = _document(connection, passage, found_at)
    return _inserted(
        connection,
        "INSERT INTO places (key, passage, document, passage_id, start, stop, found_at) "
        "VALUES (?, ?, ?, ?, ?, ?, ?)",
        (key, text, document, passage.id, passage.start, passage.end, found_at),
    )


def _writable(passage: Passage) -> Passage:
    """The passage with `?` for halves of characters, which no file can hold."""
    fields = passage.model_dump()
    clean: dict[str, Any] = {
        name: value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
        for name, value in fields.items()
    }
    return passage if clean == fields else Passage(**clean)


def _passage(connection: sqlite3.Connection, passage: Passage, found_at: str) -> int:
    key = content_hash([passage.title, passage.text])
    row = connection.execute("SELECT id FROM passages WHERE key = ?", (key,)).fetchone()
    if row is not None:
        return int(row[0])
    number = _inserted(
        connection,
        "INSERT INTO passages (key, title, text, found_at) VALUES (?, ?, ?, ?)",
        (key, passage.title, passage.text, found_at),
    )
    index_words(connection, number, passage.title, passage.text)
    return number


def _document(connection: sqlite3.Connection, passage: Passage, found_at: str) -> int:
    parts = (passage.document_id, passage.source, passage.title, passage.url, passage.date)
    key = content_hash(parts)
    row = connection.execute("SELECT id FROM documents WHERE key = ?", (key,)).fetchone()
    if row is not None:
        return int(row[0])
    return _inserted(
        connection,
        "INSERT INTO documents (key, document_id, source, title, url, date, found_at) "
        "VALUES (?, ?, ?, ?, ?, ?, ?)",
        (key, *parts, found_at),
    )


def _inserted(connection: sqlite3.Connection, sql: str, values: Sequence[Any]) -> int:
    number = connection.execute(sql, values).lastrowid
    assert number is not None
    return number


def _stamp(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
