"""Fused search: what both ways find, one order out of two, one way from start to end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from numpy.typing import NDArray

from offline_judge.domain.evidence import SearchHit
from offline_judge.errors import BackendError, SearchError
from offline_judge.retrieval.corpus.build import build_corpus
from offline_judge.retrieval.corpus.documents import Document
from offline_judge.retrieval.corpus.embedding import embed_corpus
from offline_judge.retrieval.corpus.vectors import Vectors
from offline_judge.retrieval.embedding.hashing import HashingEmbedder
from offline_judge.retrieval.search.corpus import CorpusSearch
from offline_judge.retrieval.search.fusion import WORD_WEIGHT, fused

Kind = Literal["query", "passage"]


class Meaning:
    """An embedder that knows where it lies what a text speaks of: the first word that it knows."""

    id = "meaning-1"
    dimension = 3

    def __init__(self, known: Mapping[str, tuple[float, float, float]]) -> None:
        self._known = known
        self.closed = False
        self.failing = False
        self.threads: set[int] = set()

    def embed(self, texts: Sequence[str], *, kind: Kind) -> NDArray[np.float32]:
        self.threads.add(threading.get_ident())
        if self.failing:
            raise BackendError("the embedder is gone", remedy="Get another.")
        rows = [next((v for k, v in self._known.items() if k in t), (0, 0, 1)) for t in texts]
        vectors = np.array(rows, dtype=np.float32)
        unit: NDArray[np.float32] = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return unit

    def close(self) -> None:
        self.closed = True


MEANING = {
    "cars": (1.0, 0.0, 0.0),
    "automobile": (1.0, 0.1, 0.0),
    "lorry": (0.8, 0.6, 0.0),
    "cats": (0.0, 1.0, 0.0),
}
DOCUMENTS = [
    Document("auto", "Wheels", "An automobile takes people."),
    Document("lorry", "Freight", "A lorry takes goods."),
    Document("cats", "Pets", "They like cats, who sleep."),
    Document("stone", "Stones", "Granite, quarried fast."),
]


@pytest.fixture
def corpora(tmp_path: Path) -> Path:
    build_corpus("c", DOCUMENTS, tmp_path)
    embed_corpus("c", tmp_path, Meaning(MEANING))
    return tmp_path


def _search(
    corpora: Path, query: str, limit: int = 2, embedder: Meaning | None = None
) -> tuple[SearchHit, ...]:
    search = CorpusSearch("c", corpora, embedder or Meaning(MEANING))
    return asyncio.run(search.search(query, limit=limit))


def _ids(hits: Sequence[SearchHit]) -> list[str]:
    return [hit.passage.document_id for hit in hits]


def test_what_shares_no_word_is_found_by_meaning(corpora: Path) -> None:
    assert asyncio.run(CorpusSearch("c", corpora).search("fast cars", limit=3))[0].rank == 1
    assert _ids(asyncio.run(CorpusSearch("c", corpora).search("fast cars", limit=3))) == ["stone"]
    assert _ids(_search(corpora, "fast cars")) == ["auto", "lorry"]


def test_the_score_is_the_cosine_and_the_weighted_share_of_the_best_by_words(
    corpora: Path,
) -> None:
    hits = {hit.passage.document_id: hit.score for hit in _search(corpora, "fast cars", 4)}
    assert hits["auto"] == pytest.approx(1 / np.sqrt(1.01), abs=1e-4)
    assert hits["lorry"] == pytest.approx(0.8, abs=1e-4)
    assert hits["stone"] == pytest.approx(WORD_WEIGHT, abs=1e-4)
    assert hits["cats"] == 0


def test_words_decide_where_meanings_are_near(tmp_path: Path) -> None:
    documents = [
        Document("a", "Alpha", "cars of the year"),
        Document("b", "Beta", "cars of the Zephyr line"),
    ]
    build_corpus("c", documents, tmp_path)
    embed_corpus("c", tmp_path, Meaning(MEANING))
    assert _ids(_search(tmp_path, "cars Zephyr")) == ["b", "a"]


def test_every_page_of_ranks_is_part_of_one_order(tmp_path: Path) -> None:
    # Ten kinds of fifty equal ones each, their ids mixed.
    documents = [Document(f"d{n:03}", f"T{n % 10}", f"word{n % 10} same") for n in range(500)]
    build_corpus("c", documents, tmp_path)
    embed_corpus("c", tmp_path, HashingEmbedder(64))
    search = CorpusSearch("c", tmp_path, HashingEmbedder(64))
    every = asyncio.run(search.search("word3 same", limit=500))
    order = [(-hit.score, hit.passage.id) for hit in every]
    assert order == sorted(order)
    assert len(set(order)) == 500
    for offset in (0, 7, 48, 333):
        page = asyncio.run(search.search("word3 same", limit=9, offset=offset))
        assert page == every[offset : offset + 9]


def test_a_rebuild_gives_the_same_order_and_scores(corpora: Path, tmp_path: Path) -> None:
    build_corpus("c", DOCUMENTS[::-1], tmp_path / "again")
    embed_corpus("c", tmp_path / "again", Meaning(MEANING))
    for query in ("fast cars", "cats", "granite goods"):
        assert _search(corpora, query, 4) == _search(tmp_path / "again", query, 4)


def test_the_identity_names_embedder_and_weight(corpora: Path) -> None:
    words = CorpusSearch("c", corpora).identity()
    identity = CorpusSearch("c", corpora, Meaning(MEANING)).identity()
    assert words["mode"] == "words"
    assert identity == words | {
        "mode": "words and vectors",
        "embedder": "meaning-1",
        "word_weight": WORD_WEIGHT,
    }


def test_a_search_never_goes_from_one_way_to_the_other(corpora: Path) -> None:
    words = CorpusSearch("c", corpora)
    words.identity()
    both = CorpusSearch("c", corpora, Meaning(MEANING))
    identity, before = both.identity(), asyncio.run(both.search("fast cars", limit=4))
    build_corpus("c", [*DOCUMENTS, Document("new", "New", "cars")], corpora)
    assert asyncio.run(both.search("fast cars", limit=4)) == before
    assert both.identity() == identity
    embed_corpus("c", corpora, Meaning(MEANING))
    assert _ids(asyncio.run(words.search("fast cars", limit=4))) == ["stone"]


def test_a_failing_embedder_is_a_failed_search_and_not_one_by_words(corpora: Path) -> None:
    embedder = Meaning(MEANING)
    search = CorpusSearch("c", corpora, embedder)
    asyncio.run(search.search("fast cars", limit=1))
    embedder.failing = True
    with pytest.raises(SearchError, match="could not be embedded: the embedder is gone") as caught:
        asyncio.run(search.search("fast cars", limit=1))
    assert caught.value.remedy == "Get another."


def test_vectors_that_are_not_complete_are_not_searched(corpora: Path) -> None:
    build_corpus("c", DOCUMENTS[:3], corpora)
    with pytest.raises(SearchError, match="not complete"):
        CorpusSearch("c", corpora, Meaning(MEANING)).identity()


def test_a_query_is_embedded_outside_of_the_event_loop(corpora: Path) -> None:
    embedder = Meaning(MEANING)
    _search(corpora, "cars", embedder=embedder)
    assert embedder.threads
    assert threading.get_ident() not in embedder.threads


async def test_queries_at_the_same_time_reach_the_embedder_one_by_one(corpora: Path) -> None:
    meeting = threading.Barrier(2)
    met: list[bool] = []

    class Alone(Meaning):
        def embed(self, texts: Sequence[str], *, kind: Kind) -> NDArray[np.float32]:
            with suppress(threading.BrokenBarrierError):
                met.append(meeting.wait(0.3) >= 0)
            return super().embed(texts, kind=kind)

    search = CorpusSearch("c", corpora, Alone(MEANING))
    await asyncio.gather(*(search.search("cars", limit=1) for _ in range(2)))
    assert met == []


def test_closing_the_search_closes_its_embedder(corpora: Path) -> None:
    embedder = Meaning(MEANING)
    CorpusSearch("c", corpora, embedder).close()
    assert embedder.closed


@pytest.mark.parametrize("query", ["", "?!", "\n", '"(', "\u3002", "\ud83d"])
def test_a_query_without_a_word_finds_nothing_near_either(corpora: Path, query: str) -> None:
    assert _search(corpora, query) == ()


@pytest.mark.parametrize(
    "query", ["cars " * 1000, "cars" * 1250, " ".join(f"cars{n}" for n in range(700)), "車" * 5000]
)
def test_a_query_of_five_thousand_characters(corpora: Path, query: str) -> None:
    assert len(query) >= 4900
    assert len(_search(corpora, query, 4)) == 4


def test_a_query_of_function_words_alone_goes_by_meaning(corpora: Path) -> None:
    assert len(_search(corpora, "who", 4)) == 4


def test_a_corpus_of_one_word(tmp_path: Path) -> None:
    build_corpus("c", [Document("d", "", "cars")], tmp_path)
    embed_corpus("c", tmp_path, Meaning(MEANING))
    (hit,) = _search(tmp_path, "cars", 5)
    assert hit.score == pytest.approx(1 + WORD_WEIGHT, abs=1e-4)


def test_ten_thousand_equal_passages_are_told_apart_by_their_ids(tmp_path: Path) -> None:
    build_corpus("c", [Document(f"d{n:05}", "", "cars") for n in range(9999, -1, -1)], tmp_path)
    embed_corpus("c", tmp_path, Meaning(MEANING))
    assert _ids(_search(tmp_path, "cars", 3)) == ["d00000", "d00001", "d00002"]


def _vectors(rows: Sequence[Sequence[float]]) -> Vectors:
    places = np.array([n + (n % 2 << 32) for n in range(len(rows))], dtype=np.uint64)
    order = np.argsort(places)
    return Vectors(np.array(rows, dtype=np.float32)[order], places[order])


def test_fusing_takes_the_best_and_those_as_near_as_the_last(tmp_path: Path) -> None:
    vectors = _vectors([(1, 0), (0.5, 0.5), (0.5, 0.5), (0, 1)])
    best = fused(vectors, np.array([1, 0], dtype=np.float32), [], 2)
    assert [place for place, _ in best] == [0, 2, 1 + (1 << 32)]
    assert [score for _, score in best] == [1.0, 0.5, 0.5]


def test_fusing_counts_words_in_shares_of_the_best(tmp_path: Path) -> None:
    vectors = _vectors([(1, 0), (1, 0), (1, 0)])
    words = [(2, 8.0), (0, 2.0)]
    best = fused(vectors, np.array([1, 0], dtype=np.float32), words, 3, weight=0.4)
    assert best == [(2, pytest.approx(1.4)), (0, pytest.approx(1.1)), (1 + (1 << 32), 1.0)]
