"""A search that a person added passages to: theirs come first, then what is found."""

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


class OwnPassages:
    """Puts passages before the hits of a search, each once: the newest first.

    The first search that succeeds gives as many as it has ranks; what had no room waits for the
    next one. So the passage added last is always read. For the judging of one sample: it cannot
    tell the searches of one sample from another's.

    Args:
        inner: What else is searched; closed with this.
        passages: As they were added, the newest last.
    """

    name: ClassVar[str] = ""

    def __init__(self, inner: SearchProvider, passages: Sequence[Passage]) -> None:
        # A class's own by the protocol, but here the inner one's: the trace names who searched.
        self.__dict__["name"] = inner.name
        self._inner = inner
        self._passages = tuple(passages)
        self._waiting = self._passages[::-1]

    def identity(self) -> dict[str, Any]:
        """The inner one's, and under `own` the ids of the passages, which are content hashes."""
        return {**self._inner.identity(), "own": [passage.id for passage in self._passages]}

    async def search(self, query: str, *, limit: int, offset: int = 0) -> tuple[SearchHit, ...]:
        """The passages that wait, the newest first, then what is found, `limit` hits in all.

        The score of a passage is that of the best hit, since nothing measured it.

        Raises:
            SearchError: the inner search failed; the passages wait for the next one.
        """
        found = await self._inner.search(query, limit=limit, offset=offset)
        if offset or not self._waiting:
            return found
        given, self._waiting = self._waiting[:limit], self._waiting[limit:]
        best = max((hit.score for hit in found), default=1.0)
        ids = {passage.id for passage in self._passages}
        own = [SearchHit(rank=1, score=best, passage=passage) for passage in given]
        joined = [*own, *(hit for hit in found if hit.passage.id not in ids)][:limit]
        return tuple(hit.model_copy(update={"rank": n}) for n, hit in enumerate(joined, start=1))

    def close(self) -> None:
        """Close the inner one."""
        self._inner.close()


OWN: type[SearchProvider] = OwnPassages
