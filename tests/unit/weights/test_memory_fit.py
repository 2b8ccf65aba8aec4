"""Whether a model fits: counted from real headers, and said to be unknown where it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from offline_judge.weights.cards import load_cards
from offline_judge.weights.fit import Fit, fit
from offline_judge.weights.memory import free_memory


@pytest.mark.engine
def test_a_cache_is_counted_from_the_header_and_grows_with_slots(small_weights: Path) -> None:
    card = load_cards()["smollm2-135m-instruct"]
    one, four = (fit(card, small_weights, window=1024, slots=slots) for slots in (1, 4))
    # 30 layers, 3 heads of keys and of values, each 64 wide, two bytes a number.
    assert four.needed - one.needed == 3 * 1024 * 30 * 3 * 64 * 2 * 2
    assert not one.at_least
    assert one.needed > card.size


def test_without_weights_only_the_least_is_told(tmp_path: Path) -> None:
    card = load_cards()["smollm2-135m-instruct"]
    assert fit(card, None, window=1024, slots=4).at_least
    other = tmp_path / "x.gguf"
    other.write_bytes(b"no model")
    assert fit(card, other, window=1024, slots=4).at_least


@pytest.mark.parametrize(
    ("free", "verdict"), [(None, "unknown"), (99, "too large"), (110, "tight"), (125, "fits")]
)
def test_the_verdict(free: int | None, verdict: str) -> None:
    assert Fit(100, free, at_least=False).verdict == verdict


def test_free_memory_is_what_programs_may_take(tmp_path: Path) -> None:
    table = tmp_path / "meminfo"
    table.write_text("MemTotal:  900 kB\nMemFree:  1 kB\nMemAvailable:     300 kB\n")
    assert free_memory(table) == 300 * 1024
    table.write_text("MemTotal:  900 kB\n")
    assert free_memory(table) is None
    assert free_memory(tmp_path / "absent") is None
