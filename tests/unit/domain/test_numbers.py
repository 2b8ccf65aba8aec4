from __future__ import annotations

import pytest

from offline_judge.domain.numbers import count, duration, percent, size


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0, "0.0 s"), (8.24, "8.2 s"), (59, "59 s"), (200, "3 min 20 s"), (7500, "2 h 05 min")],
)
def test_durations(seconds: float, shown: str) -> None:
    assert duration(seconds) == shown


@pytest.mark.parametrize(
    ("number", "shown"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (98_362_432, "98.4 MB"),
        (1_117_320_768, "1.12 GB"),
        (5e13, "50000.00 GB"),
    ],
)
def test_sizes(number: float, shown: str) -> None:
    assert size(number) == shown


def test_counts_and_shares() -> None:
    assert count(1, "sample") == "1 sample"
    assert count(1200, "sample") == "1,200 samples"
    assert percent(1, 0) == "-"
