"""What a search on this machine finds, and among it what is remembered from elsewhere."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from offline_judge.domain.evidence import Passage, SearchHit
from offline_judge.errors import SearchError
from offline_judge.retrieval.evidence.offline import OfflineSearch


class Few:
    """Finds so many passages and no more; cannot be searched where it is to fail."""

    name: ClassVar[str] = "few"

    def __init__(self, name: str, count: int, *, failing: bool = False) -> None:
        self._name = name
        self._count = count
        self._failing = failing

    def identity(self) -> dict[str, Any]:
        return {"provider": self._name}

    async def search(self, query: str, *, limit: int, offset: int = 0) -> tuple[SearchHit, ...]:
        if self._failing:
            raise SearchError("the record is gone")
        ranks = range(offset + 1, min(offset + limit, self._count) + 1)
        return tuple(SearchHit(rank=n, score=1.0, passage=self._passage(n)) for n in ranks)

    def close(self) -> None:
        pass

    def _passage(self, rank: int) -> Passage:
        name = f"{self._name}{rank}"
        return Passage(id=name, document_id="d", title="", text=name)


def offline(corpus: int, memory: int, told: list[str], *, failing: bool = False) -> OfflineSearch:
    return OfflineSearch(Few("c", corpus), Few("m", memory, failing=failing), told.append)


@pytest.mark.parametrize(
    ("corpus", "memory", "limit", "expected"),
    [
        (9, 9, 6, "c1 c2 m1 c3 c4 m2"),
        (9, 9, 2, "c1 c2"),
        (0, 9, 1, "m1"),
        (0, 9, 2, "m1 m2"),
        (0, 9, 6, "m1 m2 m3 m4 m5 m6"),
        (1, 9, 4, "c1 m1 m2 m3"),
        (9, 1, 6, "c1 c2 m1 c3 c4 c5"),
        (2, 1, 6, "c1 c2 m1"),
    ],
)
async def test_the_memory_has_each_third_rank_and_those_the_corpus_leaves(
    corpus: int, memory: int, limit: int, expected: str
) -> None:
    hits = await offline(corpus, memory, []).search("?", limit=limit)
    assert " ".join(hit.passage.id for hit in hits) == expected
    assert [hit.rank for hit in hits] == list(range(1, len(hits) + 1))


async def test_further_ranks_go_on_where_the_first_ended() -> None:
    search = offline(4, 9, [])
    whole = await search.search("?", limit=8)
    assert await search.search("?", limit=5, offset=3) == whole[3:]


async def test_a_memory_that_fails_is_told_once_and_passed_over() -> None:
    told: list[str] = []
    search = offline(9, 9, told, failing=True)
    for _ in range(2):
        hits = await search.search("?", limit=3)
        assert [hit.passage.id for hit in hits] == ["c1", "c2", "c3"]
    assert len(told) == 1
