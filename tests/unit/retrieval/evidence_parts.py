"""Small records, vectors and embedders for tests of the evidence record."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from offline_judge.domain.evidence import Passage, SearchHit
from offline_judge.retrieval.evidence.chroma import ChromaIndex, Events
from offline_judge.retrieval.evidence.model import Question, Scope
from offline_judge.retrieval.evidence.record import Record
from offline_judge.retrieval.evidence.vectors import Matrix, Space, VectorTable, embed_missing

DIMENSION = 32
INDEXED = 1500  # Chroma writes its index to files from a thousand vectors on


def passage(number: int | str, text: str = "", **more: Any) -> Passage:
    """A passage with an id of its own."""
    words = text or f"passage number {number}"
    values = {"document_id": f"d{number}", "title": "", "end": len(words), **more}
    return Passage(id=f"p{number}", text=words, **values)


def hits(*passages: Passage, first: int = 1) -> tuple[SearchHit, ...]:
    """Passages as a provider ranks them."""
    return tuple(
        SearchHit(rank=rank, score=1 / rank, passage=one)
        for rank, one in enumerate(passages, first)
    )


def question(query: str, name: str = "wiki", scope: Scope | None = None) -> Question:
    """A query to a corpus."""
    return Question("corpus", {"name": name}, query, scope or Scope())


class Random:
    """Gives every text a vector of its own, the same in every process, and counts its calls."""

    dimension = DIMENSION

    def __init__(self, id: str = "random-1") -> None:
        self.id = id
        self.texts = 0

    def embed(
        self, texts: Sequence[str], *, kind: Literal["query", "passage"]
    ) -> NDArray[np.float32]:
        """Unit vectors, shape (texts, 32)."""
        del kind
        self.texts += len(texts)
        return np.stack([unit(f"{self.id} {text}") for text in texts])

    def close(self) -> None:
        """Nothing to let go of."""


def unit(seed: str | int) -> NDArray[np.float32]:
    """A direction that belongs to a text or number."""
    number = seed if isinstance(seed, int) else int.from_bytes(seed.encode(), "big")
    vector = np.random.default_rng(number).normal(size=DIMENSION).astype(np.float32)
    return vector / np.float32(np.linalg.norm(vector))


def embed_all(table: VectorTable, embedder: Random) -> None:
    """Embed whatever has no vector yet."""
    done, last = 1, 0
    while done:
        done, last = embed_missing(table, embedder, last, 500)


def filled_record(folder: Path, count: int, embedder: Random, first: int = 0) -> Record:
    """A record with so many passages, each with its vector."""
    record = Record(folder)
    record.add_passages(
        passage(n, date=f"20{n % 100:02}-01-01", source=f"corpus:{n % 100}")
        for n in range(first, first + count)
    )
    embed_all(table_of(record, embedder), embedder)
    return record


def table_of(record: Record, embedder: Random) -> VectorTable:
    """The vectors of an embedder."""
    return VectorTable(record, Space(embedder.id, embedder.dimension))


def index_of(record: Record, embedder: Random, told: list[str]) -> ChromaIndex:
    """Chroma over them, not opened yet."""
    events = Events(told=told.append)
    return ChromaIndex(table_of(record, embedder), record.folder / "chroma", events)


def recall(
    index: ChromaIndex, table: VectorTable, allowed: NDArray[np.bool_] | None = None
) -> float:
    """Share of the five exact neighbours that an index finds, over 60 queries."""
    exact = Matrix(table)
    exact.refresh()
    found = wanted = 0
    for number in range(60):
        query = unit(1_000_000 + number)
        right, _ = exact.nearest(query, 5, allowed)
        near, cosines = index.nearest(query, 5, allowed)
        found += len(set(right) & set(near))
        wanted += len(right)
        # Whatever it finds, it tells the truth about.
        told = exact.cosines(query, near)
        assert np.allclose(cosines, [told[int(n)] for n in near], atol=1e-5)
    return found / wanted


def build_index(folder: Path, count: int) -> None:
    """A record with so many vectors, and an index of them that was closed in good order."""
    embedder = Random()
    record = filled_record(folder, count, embedder)
    index = index_of(record, embedder, [])
    assert index.open()
    assert index.fill() == count
    index.close()
    record.close()


def check_answers(folder: Path, count: int) -> list[str]:
    """Open, fill, compare with exact search; nothing is embedded; gives what was told."""
    embedder, told = Random(), list[str]()
    record = Record(folder)
    table = table_of(record, embedder)
    index = index_of(record, embedder, told)
    assert index.open()
    index.fill()
    assert recall(index, table) >= 0.98
    held = index.holds()
    index.close()
    assert (embedder.texts, table.count(), table.count_until(held)) == (0, count, count)
    assert record.stats().passages == count
    record.close()
    return told
