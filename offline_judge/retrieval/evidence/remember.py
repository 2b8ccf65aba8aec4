"""A search that remembers: the record is asked first, and told what was found."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from offline_judge.domain.evidence import SearchHit
from offline_judge.errors import StorageError
from offline_judge.protocols import SearchProvider
from offline_judge.retrieval.evidence.behind import EmbeddingBehind
from offline_judge.retrieval.evidence.model import Question, Scope
from offline_judge.retrieval.evidence.record import Record

_GRACE_S = 3.0


def _silent(_sentence: str) -> None:
    pass


@dataclass(frozen=True)
class Voices:
    """Whom to tell what; called in the thread that searches."""

    progress: Callable[[str], None] = _silent
    fault: Callable[[str], None] = _silent


class RememberingSearch:
    """Passes searches on to a provider, unless the record knows what they found.

    Only what was asked of the same provider with the same words in the same scope counts as the
    same search. A search that fails is not recorded; one that finds nothing is. A fault of the
    record is told and never fails a search.

    Args:
        provider: What is searched; closed with this.
        record: Where results are kept; closed with this.
        scope: What, beside its words, makes a search the same.
        behind: Embeds what was recorded; closed with this.
        voices: Take sentences for people.
    """

    name: ClassVar[str] = "remembering"

    def __init__(
        self,
        provider: SearchProvider,
        record: Record,
        scope: Scope,
        behind: EmbeddingBehind | None = None,
        voices: Voices | None = None,
    ) -> None:
        # The trace names who found a passage, and that is the provider.
        self.__dict__["name"] = provider.name
        self._provider = provider
        self._record = record
        self._scope = scope
        self._behind = behind
        self._voices = voices or Voices()
        self._faults: set[str] = set()
        self._said: set[str] = set()
        self._woken = False

    def identity(self) -> dict[str, Any]:
        """The provider's: what is remembered is what it would find."""
        return self._provider.identity()

    async def search(self, query: str, *, limit: int, offset: int = 0) -> tuple[SearchHit, ...]:
        """The provider's hits, or those it gave the last time, with the time they were found.

        Raises:
            SearchError: the provider failed.
        """
        # Asked each time: a corpus whose vectors have become ready finds other passages.
        identity = await asyncio.to_thread(self._provider.identity)
        question = Question(self._provider.name, identity, query, self._scope)
        known = await asyncio.to_thread(self._look_up, question, limit, offset)
        if known is None:
            known = await self._provider.search(query, limit=limit, offset=offset)
            await asyncio.to_thread(self._keep, question, known, limit, offset)
        if not self._woken:
            # What earlier runs left without a vector gets one, also where nothing new is found.
            self._wake()
        self._relay()
        return known

    def close(self) -> None:
        """Let go of provider and record; what waits to be embedded is given some seconds."""
        if self._behind is not None:
            self._behind.close(_GRACE_S)
        self._relay()
        self._record.close()
        self._provider.close()

    def _look_up(self, question: Question, limit: int, offset: int) -> tuple[SearchHit, ...] | None:
        try:
            answer = self._record.look_up(question, limit=limit, offset=offset)
        except StorageError as error:
            self._faults.add(str(error))
            return None
        return None if answer is None else answer.hits

    def _keep(
        self, question: Question, hits: tuple[SearchHit, ...], limit: int, offset: int
    ) -> None:
        try:
            self._record.keep(question, hits, limit=limit, offset=offset)
        except StorageError as error:
            self._faults.add(str(error))
            return
        if hits:
            self._wake()

    def _wake(self) -> None:
        self._woken = True
        if self._behind is not None:
            self._behind.wake()

    def _relay(self) -> None:
        """Say what the helpers found out; each fault of the record once."""
        for sentence in self._faults - self._said:
            self._voices.fault(sentence)
        self._said |= self._faults
        for sentence in self._behind.told() if self._behind is not None else ():
            self._voices.progress(sentence)
