"""A search on this machine, and beside it what earlier searches found elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from offline_judge.domain.evidence import SearchHit
from offline_judge.errors import SearchError
from offline_judge.protocols import SearchProvider

_EVERY = 3
"""Each third rank is the memory's, and each that the provider leaves: its passages come from other
sources and their scores cannot be compared with the provider's."""


class OfflineSearch:
    """A provider's hits with those of the memory among them.

    Args:
        provider: Searches on this machine; closed with this.
        memory: What was found from other sources; closed with this.
        tell: Takes sentences for people.
    """

    name: ClassVar[str] = "offline"

    def __init__(
        self, provider: SearchProvider, memory: SearchProvider, tell: Callable[[str], None]
    ) -> None:
        self.__dict__["name"] = provider.name
        self._provider = provider
        self._memory = memory
        self._tell = tell
        self._failed = False

    def identity(self) -> dict[str, Any]:
        """The provider's, and under `memory` the memory's."""
        return {**self._provider.identity(), "memory": self._memory.identity()}

    async def search(self, query: str, *, limit: int, offset: int = 0) -> tuple[SearchHit, ...]:
        """The hits of ranks `offset + 1` to `offset + limit`; fewer where there are no more.

        Raises:
            SearchError: the provider failed. A memory that fails is told once and passed over.
        """
        count = offset + limit
        hits = list(await self._provider.search(query, limit=count))
        # All of the ranks may be left to it: the provider may find nothing.
        remembered = await self._remembered(query, count)
        known = {(hit.passage.title, hit.passage.text) for hit in hits}
        extra = [h for h in remembered if (h.passage.title, h.passage.text) not in known]
        merged: list[SearchHit] = []
        while len(merged) < count and (hits or extra):
            of_memory = extra and (not hits or (len(merged) + 1) % _EVERY == 0)
            merged.append((extra if of_memory else hits).pop(0))
        ranked = enumerate(merged[offset:], offset + 1)
        return tuple(hit.model_copy(update={"rank": rank}) for rank, hit in ranked)

    def close(self) -> None:
        """Let go of both. Safe to call twice."""
        try:
            self._provider.close()
        finally:
            self._memory.close()

    async def _remembered(self, query: str, count: int) -> tuple[SearchHit, ...]:
        try:
            return await self._memory.search(query, limit=count)
        except SearchError as error:
            if not self._failed:
                self._failed = True
                self._tell(str(error))
            return ()
