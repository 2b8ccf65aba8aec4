"""Searches of a SAGE run: each is made once, and told in the trace whenever it is used."""

from __future__ import annotations

import time
from collections import OrderedDict

from offline_judge.domain.events import SearchFinished
from offline_judge.domain.evidence import SearchHit
from offline_judge.errors import SearchError
from offline_judge.protocols import MethodContext, SearchProvider

_KEPT = 4096


class Searches:
    """Remembers the results of this run's searches; failures are never remembered."""

    def __init__(self) -> None:
        self._hits: OrderedDict[tuple[str, int], tuple[SearchHit, ...]] = OrderedDict()

    async def find(
        self, context: MethodContext, query: str, *, limit: int, round: int
    ) -> tuple[SearchHit, ...] | None:
        """The hits, or None where the search failed; either way the trace is told."""
        provider = context.search
        if provider is None:
            raise ValueError("SAGE was started without a search provider")
        key = (query, limit)
        started = time.monotonic()
        hits, error = self._hits.get(key), ""
        reused = hits is not None
        if hits is None:
            hits, error = await self._search(provider, key)
        context.trace.emit(
            SearchFinished(
                round=round,
                query=query,
                provider=provider.name,
                hits=hits or (),
                error=error,
                seconds=time.monotonic() - started,
                reused=reused,
            )
        )
        return None if error else hits

    async def _search(
        self, provider: SearchProvider, key: tuple[str, int]
    ) -> tuple[tuple[SearchHit, ...], str]:
        query, limit = key
        try:
            hits = await provider.search(query, limit=limit)
        except SearchError as error:
            return (), str(error)
        self._hits[key] = hits
        if len(self._hits) > _KEPT:
            self._hits.popitem(last=False)
        return hits, ""
