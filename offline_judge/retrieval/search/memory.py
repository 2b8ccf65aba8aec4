"""Search in what earlier searches found on this machine."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, ClassVar

from offline_judge.domain.evidence import SearchHit
from offline_judge.errors import BackendError, SearchError, StorageError
from offline_judge.protocols import Embedder, SearchProvider
from offline_judge.retrieval.evidence.fused import Nearest, RecordSearch
from offline_judge.retrieval.evidence.model import Filters, Question, Scope
from offline_judge.retrieval.evidence.record import Record, oldest_allowed

SIMILARITY = 0.5
"""Least similarity of a passage that another query found.

Measured with all-MiniLM-L6-v2 on 2,240 questions over 7,851 passages: .5 keeps .92 of the passages
that hold the answer, and offers an unrelated one to .36 of the questions (.45: .96 and .56; .55:
.85 and .21)."""

_SIMILARITIES = {"hashing": 0.25, "multilingual-e5": 0.82}


class MemorySearch:
    """Offers recorded passages: those of the same words first, then similar ones of other queries.

    What another query found is marked `cached`, and every hit says when it was found. The record
    grows while a run goes on, so a query may find more later than before.

    Args:
        record: Where results are kept; closed with this.
        embedder: For similarity by meaning; None for words only. Closed with this.
        scope: Locale, dates and age limit that hits must keep to.
        similarity: Least similarity of what another query found; None takes the embedder's own.
        not_sources: Sources that are left out, because they are searched themselves.
        open_nearest: Opens the index of vectors; exact search in memory without.
    """

    name: ClassVar[str] = "memory"

    def __init__(
        self,
        record: Record,
        embedder: Embedder | None = None,
        scope: Scope | None = None,
        *,
        similarity: float | None = None,
        not_sources: tuple[str, ...] = (),
        open_nearest: Callable[[], Nearest | None] = lambda: None,
    ) -> None:
        self._record = record
        self._embedder = embedder
        self._scope = scope or Scope()
        self._similarity = default_similarity(embedder) if similarity is None else similarity
        self._not_sources = not_sources
        self._open_nearest = open_nearest
        self._search: RecordSearch | None = None

    def identity(self) -> dict[str, Any]:
        """Provider, embedder and similarity. What is remembered grows and is not part of it."""
        embedder = self._embedder.id if self._embedder is not None else ""
        return {"provider": self.name, "embedder": embedder, "similarity": self._similarity}

    async def search(self, query: str, *, limit: int, offset: int = 0) -> tuple[SearchHit, ...]:
        """The hits of ranks `offset + 1` to `offset + limit`; empty where nothing is near enough.

        Raises:
            SearchError: the record cannot be read, or the embedder failed.
        """
        if limit < 1 or offset < 0:
            raise ValueError(f"limit {limit} and offset {offset} ask for no ranks")
        try:
            return await asyncio.to_thread(self._find, query, limit, offset)
        except (StorageError, BackendError) as error:
            raise SearchError(f"The evidence record cannot be searched: {error}") from error

    def close(self) -> None:
        """Let go of record and embedder. Safe to call twice."""
        if self._search is not None:
            self._search.close()
        if self._embedder is not None:
            self._embedder.close()
        self._record.close()

    def _find(self, query: str, limit: int, offset: int) -> tuple[SearchHit, ...]:
        count = offset + limit
        scope = self._scope
        hits = list(self._record.same_words(Question("", {}, query, scope), self._not_sources))
        known = {(hit.passage.title, hit.passage.text) for hit in hits}
        filters = Filters(
            date_from=scope.date_from,
            date_to=scope.date_to,
            not_sources=self._not_sources,
            found_after=oldest_allowed(scope.max_age_days),
        )
        similar = self._searching().find(
            query, limit=count + len(hits), filters=filters, minimum=self._similarity
        )
        for found in similar:
            if (found.passage.title, found.passage.text) not in known:
                hits.append(
                    SearchHit(
                        rank=1,
                        score=found.score,
                        passage=found.passage,
                        cached=True,
                        found_at=found.found_at,
                    )
                )
        return tuple(
            hit.model_copy(update={"rank": rank})
            for rank, hit in enumerate(hits[offset:count], offset + 1)
        )

    def _searching(self) -> RecordSearch:
        if self._search is None:
            self._search = RecordSearch(self._record, self._embedder, self._open_nearest())
        return self._search


def default_similarity(embedder: Embedder | None) -> float:
    """The least similarity that suits an embedder: cosines mean different things in each."""
    name = embedder.id if embedder is not None else ""
    return next((least for key, least in _SIMILARITIES.items() if key in name), SIMILARITY)


PROVIDER: type[SearchProvider] = MemorySearch
