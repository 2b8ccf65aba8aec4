"""What a person changes of a search: own passages once, others never, and all else in its place."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from offline_judge.domain.evidence import Passage, SearchHit
from offline_judge.errors import SearchError, StorageError
from offline_judge.retrieval.search.own import (
    AmendedSearch,
    dump_passages,
    load_passages,
    own_passage,
)

MINE = own_passage("The capital is Astana.", title="Note", date="2024")


class Numbered:
    """Finds numbered passages; its first `down` searches fail."""

    name: ClassVar[str] = "numbered"

    def __init__(self, down: int = 0) -> None:
        self.down = down
        self.closed = False

    def identity(self) -> dict[str, Any]:
        return {"provider": self.name, "content": "1"}

    async def search(self, query: str, *, limit: int, offset: int = 0) -> tuple[SearchHit, ...]:
        if self.down:
            self.down -= 1
            raise SearchError("the index is gone")
        return tuple(
            SearchHit(
                rank=n,
                score=10.0 - n,
                passage=Passage(id=f"p{n}", document_id="d", title="", text=str(n)),
            )
            for n in range(offset + 1, offset + limit + 1)
        )

    def close(self) -> None:
        self.closed = True


async def ids(search: AmendedSearch, **more: int) -> list[str]:
    hits = await search.search("?", limit=3, **more)
    start = more.get("offset", 0) + 1
    assert [hit.rank for hit in hits] == list(range(start, start + len(hits)))
    return [hit.passage.id for hit in hits]


async def test_they_take_the_last_ranks_and_only_once() -> None:
    search = AmendedSearch(Numbered(), [MINE])
    assert await ids(search) == ["p1", "p2", MINE.id]
    assert await ids(search) == ["p1", "p2", "p3"]


async def test_a_search_for_further_ranks_does_not_use_them_up() -> None:
    search = AmendedSearch(Numbered(), [MINE])
    assert await ids(search, offset=3) == ["p4", "p5", "p6"]
    assert await ids(search) == ["p1", "p2", MINE.id]


async def test_a_failed_search_stays_one_and_they_wait_for_the_next() -> None:
    search = AmendedSearch(Numbered(down=1), [MINE])
    with pytest.raises(SearchError):
        await search.search("?", limit=3)
    assert await ids(search) == ["p1", "p2", MINE.id]


async def test_the_newest_are_read_first_and_those_without_room_in_later_searches() -> None:
    many = [own_passage(f"Fact {n}.") for n in range(5)]
    newest = [passage.id for passage in reversed(many)]
    search = AmendedSearch(Numbered(), many)
    assert await ids(search) == newest[:3]
    assert await ids(search) == ["p1", *newest[3:]]
    assert await ids(search) == ["p1", "p2", "p3"]


async def test_what_is_left_out_is_replaced_in_its_place_by_the_next() -> None:
    search = AmendedSearch(Numbered(), without=["p2", "p9", "p3"])
    assert await ids(search) == ["p1", "p4", "p5"]
    assert await ids(search, offset=6) == ["p7", "p8", "p10"]


async def test_own_passages_and_those_left_out_together() -> None:
    search = AmendedSearch(Numbered(), [MINE], ["p1"])
    assert await ids(search) == ["p4", "p2", MINE.id]
    assert await ids(search) == ["p4", "p2", "p3"]
    assert search.identity()["without"] == ["p1"]


async def test_an_own_passage_that_is_found_too_is_given_once() -> None:
    class Knows(Numbered):
        async def search(self, query: str, *, limit: int, offset: int = 0) -> tuple[SearchHit, ...]:
            first, *others = await super().search(query, limit=limit, offset=offset)
            return (first.model_copy(update={"passage": MINE}), *others)

    assert await ids(AmendedSearch(Knows(), [MINE])) == ["p2", "p3", MINE.id]


async def test_their_score_is_finite_where_nothing_is_found() -> None:
    class Empty(Numbered):
        async def search(self, query: str, *, limit: int, offset: int = 0) -> tuple[SearchHit, ...]:
            return ()

    assert await AmendedSearch(Empty(), without=["p1"]).search("?", limit=3) == ()
    (hit,) = await AmendedSearch(Empty(), [MINE]).search("?", limit=3)
    assert hit.passage == MINE
    assert hit.passage.source == "person"


def test_what_they_say_is_part_of_the_searchs_identity() -> None:
    def identity(text: str) -> dict[str, Any]:
        return AmendedSearch(Numbered(), [own_passage(text)]).identity()

    assert identity("one") == identity("one")
    assert identity("one") != identity("two")
    assert identity("one")["content"] == "1"


def test_the_trace_names_who_searched_and_closing_reaches_it() -> None:
    inner = Numbered()
    search = AmendedSearch(inner, [MINE])
    assert search.name == "numbered"
    search.close()
    assert inner.closed


def test_a_file_of_them_reads_back_and_a_damaged_one_is_named() -> None:
    assert load_passages(dump_passages([MINE]), "f") == (MINE,)
    with pytest.raises(StorageError, match="the-file"):
        load_passages(b'[{"id": 1}]', "the-file")
