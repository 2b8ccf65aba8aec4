"""A search that a person amends: passages of their own behind what is found, others left out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, ClassVar

from pydantic import TypeAdapter, ValidationError

from offline_judge.domain.base import canonical_json, content_hash
from offline_judge.domain.evidence import Passage, SearchHit
from offline_judge.errors import StorageError
from offline_judge.protocols import SearchProvider

SOURCE = "person"
_PASSAGES = TypeAdapter(tuple[Passage, ...])


def own_passage(text: str, *, title: str = "", url: str = "", date: str = "") -> Passage:
    """A passage that a person wrote down; its id is its content's hash."""
    identity = f"own:{content_hash([text, title, url, date])[:12]}"
    return Passage(
        id=identity,
        document_id=identity,
        title=title,
        text=text,
        end=len(text),
        source=SOURCE,
        url=url,
        date=date,
    )


def dump_passages(passages: Sequence[Passage]) -> bytes:
    """The passages as a file of a run keeps them."""
    return canonical_json([passage.model_dump() for passage in passages]).encode() + b"\n"


def load_passages(content: bytes, place: str) -> tuple[Passage, ...]:
    """What `dump_passages` wrote.

    Raises:
        StorageError: the file is damaged.
    """
    try:
        return _PASSAGES.validate_python(json.loads(content))
    except (ValueError, ValidationError) as error:
        raise StorageError(f"This file is damaged: {error}", where=place) from error


class AmendedSearch:
    """Puts a person's passages among the hits of a search, each once, and leaves others out.

    All that is found keeps its place, so that prompts about it stay what they were and need not be
    read anew: own passages take the last ranks, and for one that is left out the next further rank
    stands in. The first search that succeeds gives as many own passages as it has ranks, the newest
    first; what had no room waits for the next one. So the passage added last is always read. For
    the judging of one sample: it cannot tell the searches of one sample from another's.

    Args:
        inner: What else is searched; closed with this.
        own: Passages as they were added, the newest last.
        without: Ids of passages that are never given.
    """

    name: ClassVar[str] = ""

    def __init__(
        self, inner: SearchProvider, own: Sequence[Passage] = (), without: Sequence[str] = ()
    ) -> None:
        # A class's own by the protocol, but here the inner one's: the trace names who searched.
        self.__dict__["name"] = inner.name
        self._inner = inner
        self._own = tuple(own)
        self._without = tuple(without)
        self._waiting = self._own[::-1]

    def identity(self) -> dict[str, Any]:
        """The inner one's, and ids: under `own` content hashes, under `without` as searches say."""
        found = self._inner.identity()
        if self._own:
            found = {**found, "own": [passage.id for passage in self._own]}
        return {**found, "without": list(self._without)} if self._without else found

    async def search(self, query: str, *, limit: int, offset: int = 0) -> tuple[SearchHit, ...]:
        """What is found and the passages that wait, `limit` hits in all.

        The score of an own passage is that of the best hit, since nothing measured it.

        Raises:
            SearchError: the inner search failed; the passages wait for the next one.
        """
        wanted = limit + len(self._without)
        found = self._kept(await self._inner.search(query, limit=wanted, offset=offset), limit)
        given: tuple[Passage, ...] = ()
        if not offset:
            given, self._waiting = self._waiting[:limit], self._waiting[limit:]
        best = max((hit.score for hit in found), default=1.0)
        own = [SearchHit(rank=1, score=best, passage=passage) for passage in given]
        ids = {passage.id for passage in given}
        others = [hit for hit in found if hit.passage.id not in ids]
        joined = [*others[: limit - len(own)], *own]
        return tuple(
            hit.model_copy(update={"rank": rank}) for rank, hit in enumerate(joined, offset + 1)
        )

    def close(self) -> None:
        """Close the inner one."""
        self._inner.close()

    def _kept(self, found: Sequence[SearchHit], limit: int) -> list[SearchHit]:
        """The first `limit` hits, with further ones in place of those that are left out."""
        further = [hit for hit in found[limit:] if hit.passage.id not in self._without]
        kept: list[SearchHit] = []
        for hit in found[:limit]:
            if hit.passage.id not in self._without:
                kept.append(hit)
            elif further:
                kept.append(further.pop(0))
        return kept


AMENDED: type[SearchProvider] = AmendedSearch
