"""One passage of the record: where, when and for which queries it was found."""

from __future__ import annotations

from typing import Any

from offline_judge.domain.record import FoundFor, FoundPlace, PassageHistory
from offline_judge.retrieval.evidence.record import Record


def passage_numbers(record: Record, id: str) -> list[int]:
    """Numbers of the passages that a search knew by this id, or that have it as their number.

    A corpus that was built anew may have given one id to several texts; the newest comes first.

    Raises:
        StorageError: the record cannot be read.
    """
    if id.isascii() and id.isdigit() and len(id) < 19:
        rows = record.database.rows("SELECT id FROM passages WHERE id = ?", (int(id),))
        if rows:
            return [row[0] for row in rows]
    rows = record.database.rows(
        "SELECT passage FROM places WHERE passage_id = ? GROUP BY passage "
        "ORDER BY max(found_at) DESC, max(id) DESC",
        (id.encode("utf-8", "replace").decode(),),
    )
    return [row[0] for row in rows]


def read_history(record: Record, number: int) -> PassageHistory | None:
    """All that is known of a passage; None where there is none of this number.

    Raises:
        StorageError: the record cannot be read.
    """
    with record.database.reading() as connection:

        def rows(sql: str) -> list[tuple[Any, ...]]:
            return connection.execute(sql, (number,)).fetchall()

        found = rows("SELECT title, text, found_at FROM passages WHERE id = ?")
        if not found:
            return None
        places = rows(
            "SELECT passage_id, source, document_id, url, date, start, stop, places.found_at "
            "FROM places JOIN documents ON document = documents.id WHERE passage = ? "
            "ORDER BY places.found_at DESC, places.id DESC"
        )
        queries = rows(
            "SELECT queries.query, "
            "provider || coalesce(':' || json_extract(identity, '$.name'), ''), "
            "locale, rank, score, queries.found_at FROM results "
            "JOIN places ON results.place = places.id JOIN queries ON results.query = queries.id "
            "WHERE passage = ? ORDER BY queries.found_at DESC, queries.id DESC, rank"
        )
        spaces = rows(
            "SELECT embedder FROM vectors JOIN spaces ON space = spaces.id WHERE passage = ? "
            "ORDER BY embedder"
        )
    title, text, first = found[0]
    return PassageHistory(
        number=number,
        title=title,
        text=text,
        first_found_at=first,
        places=tuple(FoundPlace(*row) for row in places),
        queries=tuple(FoundFor(*row) for row in queries),
        embedders=tuple(row[0] for row in spaces),
    )
