"""Search over the passages of the record, by vectors and by words."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from offline_judge.errors import BackendError, StorageError
from offline_judge.retrieval.evidence.model import Filters, Found
from offline_judge.retrieval.evidence.places import Places
from offline_judge.retrieval.evidence.record import PLACE, to_passage
from offline_judge.retrieval.evidence.terms import match_any, passage_terms, query_terms
from offline_judge.retrieval.evidence.vectors import Matrix, Space, VectorTable, embedded_text

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from offline_judge.protocols import Embedder
    from offline_judge.retrieval.evidence.record import Record

WORD_WEIGHT = 0.05
"""Score = cosine + .05 x BM25 / largest BM25; fitted on 2,240 questions, where plain reciprocal
rank fusion finds less than the vectors alone."""

_ANY = Filters()
_CANDIDATES = 100
_LISTED = 50_000  # a filter that lets more passages through is not spelled out in SQL
_MORE = 20  # times as many hits by words are looked at, as long as a filter leaves too few
_LATE = 8  # passages embedded while a query waits, because only their words were known: so many or
_LATE_MOST = 100  # as many as are to be found, up to so many


class Nearest(Protocol):
    """Whatever answers with the passages nearest to a vector."""

    def nearest(
        self, query: NDArray[np.float32], count: int, allowed: NDArray[np.bool_] | None
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """The nearest `count` passages that are allowed, with their cosines."""

    def cosines(self, query: NDArray[np.float32], passages: NDArray[np.int64]) -> dict[int, float]:
        """Cosine of each of these passages that has a vector."""

    def refresh(self) -> None:
        """Take in what is new."""

    def close(self) -> None:
        """Let go of what it holds. Safe to call twice."""


class RecordSearch:
    """Fused search over one record; by words only where there is no embedder.

    Safe to call from any thread, one at a time.

    Args:
        record: What is searched.
        embedder: Embeds queries; None for words only. Not closed with this.
        nearest: Finds nearest vectors, closed with this; exact search in memory by default.
    """

    def __init__(
        self, record: Record, embedder: Embedder | None, nearest: Nearest | None = None
    ) -> None:
        self._record = record
        self._embedder = embedder
        self._table: VectorTable | None = None
        self._nearest: Nearest | None = None
        if embedder is not None:
            self._table = VectorTable(record, Space(embedder.id, embedder.dimension))
            self._nearest = nearest or Matrix(self._table)
        self._places = Places(record)
        self._aside = ThreadPoolExecutor(1, thread_name_prefix="evidence-words")
        self._lock = threading.Lock()

    def close(self) -> None:
        """Let go of the helping thread and the vectors. Safe to call twice."""
        self._aside.shutdown()
        if self._nearest is not None:
            self._nearest.close()

    def find(
        self, query: str, *, limit: int, filters: Filters = _ANY, minimum: float = 0.0
    ) -> tuple[Found, ...]:
        """The best `limit` passages, each once, whose similarity is at least `minimum`.

        Raises:
            StorageError: the record cannot be read.
            BackendError: the embedder failed.
        """
        with self._lock:
            allowed = self._places.allowed(filters) if filters else None
            if allowed is not None and not allowed.any():
                return ()
            fetch = max(_CANDIDATES, 2 * limit)
            terms = query_terms(query)
            if self._nearest is not None:
                self._nearest.refresh()
            # SQLite and NumPy both let go of the interpreter, so words cost no time of their own.
            words = self._aside.submit(self._by_words, terms, fetch, allowed)
            vector = self._embed(query)
            cosines = self._by_vectors(vector, fetch, allowed)
            bm25 = words.result()
            late = min(max(_LATE, limit), _LATE_MOST)
            similarity = self._similarity(vector, cosines, bm25, terms, late)
            largest = max(bm25.values(), default=0.0) or 1.0
            scores = {
                number: value + WORD_WEIGHT * bm25.get(number, 0.0) / largest
                for number, value in similarity.items()
                if value >= minimum
            }
            ordered = sorted(scores, key=lambda number: (-scores[number], number))[:limit]
            return self._found(ordered, scores, similarity, filters)

    def _embed(self, query: str) -> NDArray[np.float32] | None:
        if self._embedder is None or not query.strip():
            return None
        vector: NDArray[np.float32] = self._embedder.embed([query], kind="query")[0]
        return vector

    def _by_vectors(
        self, query: NDArray[np.float32] | None, count: int, allowed: NDArray[np.bool_] | None
    ) -> dict[int, float]:
        if self._nearest is None or query is None:
            return {}
        numbers, cosines = self._nearest.nearest(query, count, allowed)
        return {int(n): float(value) for n, value in zip(numbers, cosines, strict=True)}

    def _by_words(
        self, terms: list[str], count: int, allowed: NDArray[np.bool_] | None
    ) -> dict[int, float]:
        """The best passages by BM25 (positive, larger is better) among those allowed."""
        if not terms:
            return {}
        sql, match = "SELECT rowid, -rank FROM words WHERE words MATCH ?", match_any(terms)
        order = "ORDER BY rank LIMIT ?"
        database = self._record.database
        if allowed is None:
            return dict(database.rows(f"{sql} {order}", (match, count)))
        numbers = np.flatnonzero(allowed)
        if len(numbers) <= _LISTED:
            listed = json.dumps(numbers.tolist())
            # Without the plus SQLite asks the index once for each number: half a millisecond each.
            chosen = "AND +rowid IN (SELECT value FROM json_each(?))"
            return dict(database.rows(f"{sql} {chosen} {order}", (match, listed, count)))
        fetch = _MORE * count
        while True:
            rows = database.rows(f"{sql} {order}", (match, fetch))
            kept = [row for row in rows if row[0] < len(allowed) and allowed[row[0]]]
            if len(kept) >= count or len(rows) < fetch:
                return dict(kept[:count])
            fetch *= _MORE

    def _similarity(
        self,
        query: NDArray[np.float32] | None,
        cosines: dict[int, float],
        bm25: dict[int, float],
        terms: Sequence[str],
        late: int,
    ) -> dict[int, float]:
        """Cosines; of hits by words that have none, the share of the query's words in them.

        Such a share is no measure beside cosines, so no hit passes one of better words by it.
        """
        if query is None or self._nearest is None or not cosines:
            return self._shared_words(list(bm25), terms)
        wanted = [number for number in bm25 if number not in cosines]
        known = cosines | self._nearest.cosines(query, np.array(wanted, np.int64))
        missing = [number for number in wanted if number not in known]
        known |= self._embed_late(query, missing[:late])
        left = [number for number in missing if number not in known]
        if not left:
            return known
        least = min((known[number] for number in bm25 if number in known), default=1.0)
        shares = self._shared_words(left, terms)
        return known | {number: min(share, least) for number, share in shares.items()}

    def _embed_late(self, query: NDArray[np.float32], passages: list[int]) -> dict[int, float]:
        """Cosines of passages that were not embedded yet, whose vectors are kept."""
        if not passages or self._embedder is None or self._table is None:
            return {}
        marks = ",".join("?" * len(passages))
        rows = self._record.database.rows(
            f"SELECT id, title, text FROM passages WHERE id IN ({marks})", passages
        )
        try:
            texts = [embedded_text(title, text) for _, title, text in rows]
            vectors = self._embedder.embed(texts, kind="passage")
        except BackendError:
            return {}
        # A full disk takes nothing from this search.
        with suppress(StorageError):
            self._table.store([row[0] for row in rows], vectors)
        return {row[0]: float(v) for row, v in zip(rows, vectors @ query, strict=True)}

    def _shared_words(self, passages: Sequence[int], terms: Sequence[str]) -> dict[int, float]:
        """Share of the query's terms that each passage holds."""
        rows = self._record.database.rows(
            "SELECT id, title, text FROM passages WHERE id IN (SELECT value FROM json_each(?))",
            (json.dumps(list(passages)),),
        )
        wanted = set(terms)
        return {
            number: len(wanted & set(passage_terms(title, text).split())) / len(wanted)
            for number, title, text in rows
        }

    def _found(
        self,
        ordered: Sequence[int],
        scores: dict[int, float],
        similarity: dict[int, float],
        filters: Filters,
    ) -> tuple[Found, ...]:
        found = []
        for number in ordered:
            row = _latest_place(self._record, number, filters)
            if row is not None:
                found.append(
                    Found(
                        number=number,
                        passage=to_passage(row),
                        score=round(scores[number], 6),
                        similarity=round(similarity[number], 6),
                        found_at=row[9],
                    )
                )
        return tuple(found)


def _latest_place(record: Record, passage: int, filters: Filters) -> tuple[Any, ...] | None:
    """Where a passage was found the last time, among the places that the filter lets through."""
    conditions = ["passage = ?", "places.found_at >= ?"]
    values: list[Any] = [passage, filters.found_after]
    for names, word in ((filters.sources, "IN"), (filters.not_sources, "NOT IN")):
        if names:
            conditions.append(f"source {word} ({','.join('?' * len(names))})")
            values += names
    if filters.dated:
        conditions.append("day_number(date) BETWEEN ? AND ?")
        values += filters.days
    rows = record.database.rows(
        f"{PLACE}, places.found_at FROM places JOIN passages ON passage = passages.id "
        f"JOIN documents ON document = documents.id WHERE {' AND '.join(conditions)} "
        "ORDER BY places.found_at DESC, places.id LIMIT 1",
        values,
    )
    return rows[0] if rows else None
