"""Search over the record: what a filter lets through is found, and so is what words find."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from evidence_parts import hits, passage, question
from numpy.typing import NDArray

from offline_judge.errors import BackendError
from offline_judge.retrieval.embedding.hashing import HashingEmbedder
from offline_judge.retrieval.evidence import fused
from offline_judge.retrieval.evidence.fused import RecordSearch
from offline_judge.retrieval.evidence.model import Filters
from offline_judge.retrieval.evidence.record import Record
from offline_judge.retrieval.evidence.vectors import Space, VectorTable, embed_missing

Kind = Literal["query", "passage"]


@pytest.fixture
def record(tmp_path: Path) -> Iterator[Record]:
    kept = Record(tmp_path / "evidence")
    yield kept
    kept.close()


def found(record: Record, query: str, limit: int, filters: Filters) -> list[str]:
    """Ids of what is found by words."""
    search = RecordSearch(record, None)
    try:
        return [one.passage.id for one in search.find(query, limit=limit, filters=filters)]
    finally:
        search.close()


@pytest.mark.parametrize("date", ["2026", "2026-01", "2026-01-31T08:00", "20260131", "2026/01/31"])
def test_a_date_in_any_form_takes_no_place_from_others(record: Record, date: str) -> None:
    record.add_passages([passage("odd", "Lima Peru capital", date=date)])
    record.add_passages([passage("plain", "Lima Peru capital city", date="2026-01-01")])
    filters = Filters(date_from="2026", date_to="2026")
    assert found(record, "Lima Peru capital", 1, filters) == ["podd"]
    assert found(record, "Lima Peru capital", 2, filters) == ["podd", "pplain"]
    assert found(record, "Lima Peru capital", 2, Filters(date_to="2025")) == []


@pytest.mark.parametrize("date", ["", "soon", "31 January 2026", "1"])
def test_what_is_no_date_passes_no_limit(record: Record, date: str) -> None:
    record.add_passages([passage(1, "Lima Peru capital", date=date)])
    assert found(record, "Lima", 5, Filters(date_from="0001")) == []
    assert found(record, "Lima", 5, Filters(not_sources=("x",))) == ["p1"]


def test_one_place_must_keep_to_all_limits(record: Record) -> None:
    """A passage of another source that is only there found recently takes no place from others."""
    both = "Lima Peru capital"
    record.add_passages([passage(1, both, source="old"), passage(1, both, source="new")])
    record.add_passages([passage(2, f"{both} city", source="old")])
    with record.database.writing() as connection:
        connection.execute("UPDATE places SET found_at = '2020-01-01T00:00:00Z' WHERE id = 1")
    limits = Filters(sources=("old",), found_after="2021")
    assert found(record, both, 1, limits) == ["p2"]


def test_a_wide_filter_loses_no_hit_by_words(
    record: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fused, "_LISTED", 10)
    monkeypatch.setattr(fused, "_CANDIDATES", 2)
    # Those that the filter leaves out say it in fewer words, so they are the better ones.
    record.add_passages(passage(n, f"Lima {n}", source="left out") for n in range(300))
    kept = [passage(f"kept{n}", f"Lima {n}" + " and more" * 9, source="in") for n in range(20)]
    record.keep(question("Lima"), hits(*kept), limit=20)
    assert len(found(record, "Lima", 5, Filters(sources=("in",)))) == 5


class Failing(HashingEmbedder):
    """Embeds queries only."""

    def embed(self, texts: Sequence[str], *, kind: Kind) -> NDArray[np.float32]:
        if kind == "passage":
            raise BackendError("The engine broke.")
        return super().embed(texts, kind=kind)


@pytest.mark.parametrize(
    ("embedder", "limit", "most"),
    [(HashingEmbedder(), 20, 100), (HashingEmbedder(), 60, 10), (Failing(), 60, 100)],
    ids=["embedded while it waits", "more than that", "the embedder fails"],
)
def test_hits_by_words_without_vectors_stand_before_unrelated_passages_with_one(
    record: Record,
    monkeypatch: pytest.MonkeyPatch,
    embedder: HashingEmbedder,
    limit: int,
    most: int,
) -> None:
    monkeypatch.setattr(fused, "_LATE_MOST", most)
    record.add_passages(passage(n, f"Cats purr {n} times a day") for n in range(200))
    table = VectorTable(record, Space(embedder.id, embedder.dimension))
    embed_missing(table, HashingEmbedder(), limit=200)
    record.add_passages(passage(f"lima{n}", f"Lima, capital of Peru, {n}") for n in range(60))
    search = RecordSearch(record, embedder)
    found = search.find("What is the capital of Peru?", limit=limit)
    search.close()
    assert len(found) == limit
    assert all(one.passage.id.startswith("plima") for one in found)
    assert table.missing_count() == 60 - (0 if isinstance(embedder, Failing) else min(limit, most))
