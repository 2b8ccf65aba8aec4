"""Expected calibration error by hand, its bins, and folds by question."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offline_judge.metrics.folds import fold_of_questions
from offline_judge.metrics.reliability import reliability


def test_the_error_by_hand() -> None:
    found = reliability([True, False, True, True], [0.15, 0.11, 0.92, 0.98])
    low, high = found.bins
    assert (low.n, low.low, low.share_correct) == (2, 0.1, 0.5)
    assert low.mean_probability == pytest.approx(0.13)
    assert (high.n, high.high, high.share_correct) == (2, 1.0, 1.0)
    assert found.error == pytest.approx(0.5 * 0.37 + 0.5 * 0.05)


def test_a_lower_edge_belongs_to_its_bin_and_one_to_the_last() -> None:
    found = reliability([True] * 3, [0.3, 0.7, 1.0])
    assert [round(one.low, 1) for one in found.bins] == [0.3, 0.7, 0.9]


def test_without_samples_there_is_no_error() -> None:
    assert reliability([], []).error is None


def test_what_is_no_probability_is_refused() -> None:
    with pytest.raises(ValueError, match="no probability"):
        reliability([True], [1.5])
    with pytest.raises(ValueError, match="1 labels but 2"):
        reliability([True], [0.5, 0.5])


@given(st.lists(st.tuples(st.booleans(), st.floats(0, 1)), min_size=1))
def test_bins_hold_every_sample_once(rows: list[tuple[bool, float]]) -> None:
    found = reliability([label for label, _ in rows], [share for _, share in rows])
    assert sum(one.n for one in found.bins) == len(rows)
    assert found.error is not None
    assert 0 <= found.error <= 1


@given(st.lists(st.text(max_size=5)))
def test_folds_are_even_and_independent_of_order(questions: list[str]) -> None:
    folds = fold_of_questions(questions)
    sizes = Counter(folds.values())
    assert folds.keys() == set(questions)
    assert not sizes or max(sizes.values()) - min(sizes.values()) <= 1
    assert fold_of_questions(reversed(questions)) == folds
