"""Search over the record: what a filter lets through is found, and so is what words find."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from evidence_parts import hits, passage, question

from offline_judge.retrieval.evidence import fused
from offline_judge.retrieval.evidence.fused import RecordSearch
from offline_judge.retrieval.evidence.model import Filters
from offline_judge.retrieval.evidence.record import Record


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
