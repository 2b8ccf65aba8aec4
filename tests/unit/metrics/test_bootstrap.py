"""Bootstrap intervals over questions: determinism, order, pairing, and where there is none."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from offline_judge.domain.scores import Interval
from offline_judge.metrics.agreement import Row, accuracy, accuracy_of, kappa, kappa_of
from offline_judge.metrics.bootstrap import (
    Undefined,
    bootstrap,
    bootstrap_counts,
    paired_difference,
)

GROUPS = st.lists(
    st.lists(st.builds(Row, st.booleans(), st.booleans()), min_size=1, max_size=4),
    min_size=2,
    max_size=12,
)


def mean(values: Sequence[float]) -> float | Undefined:
    return sum(values) / len(values) if values else Undefined("no values")


def width(found: Interval) -> float:
    assert found.low is not None
    assert found.high is not None
    return found.high - found.low


@given(GROUPS, st.randoms(), st.integers(0, 5))
@settings(max_examples=30)
def test_the_interval_depends_on_the_seed_and_not_on_the_order(
    groups: list[list[Row]], random: Random, seed: int
) -> None:
    first = bootstrap(accuracy, groups, n=50, seed=seed)
    shuffled = [list(group) for group in groups]
    random.shuffle(shuffled)
    for rows in shuffled:
        random.shuffle(rows)
    assert bootstrap(accuracy, shuffled, n=50, seed=seed) == first


def test_another_seed_draws_otherwise() -> None:
    groups = [[float(n**2)] for n in range(40)]
    assert bootstrap(mean, groups, n=100, seed=1) != bootstrap(mean, groups, n=100, seed=2)


@given(st.lists(st.floats(0, 10), min_size=2, max_size=20))
@settings(max_examples=30)
def test_a_symmetric_case_lies_inside_its_interval(values: list[float]) -> None:
    groups = [[value] for value in values] + [[-value] for value in values]
    found = bootstrap(mean, groups, n=200)
    assert found.low is not None
    assert found.high is not None
    assert found.low - 1e-9 <= 0 <= found.high + 1e-9


def test_the_interval_of_a_share_is_that_of_its_normal_approximation() -> None:
    groups = [[float(n % 2)] for n in range(400)]
    found = bootstrap(mean, groups)
    assert found.value == 0.5
    assert found.low == pytest.approx(0.5 - 1.96 * 0.025, abs=0.005)
    assert found.high == pytest.approx(0.5 + 1.96 * 0.025, abs=0.005)


def test_whole_questions_are_resampled_not_rows() -> None:
    rows = [[float(n % 2)] for n in range(40)]
    # The same rows, ten alike to a question: four draws instead of forty.
    clustered = [[0.0] * 10, [1.0] * 10, [0.0] * 10, [1.0] * 10]
    narrow, wide = bootstrap(mean, rows), bootstrap(mean, clustered)
    assert narrow.n == wide.n == 40
    assert (narrow.groups, wide.groups) == (40, 4)
    assert width(wide) > 2 * width(narrow)


@given(GROUPS)
@settings(max_examples=30)
def test_equal_sides_differ_by_nothing(groups: list[list[Row]]) -> None:
    found = paired_difference(accuracy, groups, groups, n=30)
    assert (found.value, found.low, found.high) == (0, 0, 0)


def test_pairing_draws_the_same_questions_for_both_sides() -> None:
    before = [[float(n)] for n in range(30)]
    after = [[float(n) + 1] for n in range(30)]
    found = paired_difference(mean, after, before, n=200)
    # Unpaired, the spread of the questions would make it many units wide.
    assert found.value == pytest.approx(1)
    assert found.low == pytest.approx(1)
    assert found.high == pytest.approx(1)


def test_sides_of_different_questions_are_refused() -> None:
    with pytest.raises(ValueError, match="2 questions on one side, 1 on the other"):
        paired_difference(mean, [[1.0], [2.0]], [[1.0]])


def test_one_question_has_a_value_but_no_interval() -> None:
    found = bootstrap(mean, [[1.0, 2.0]])
    assert (found.value, found.low, found.high) == (1.5, None, None)
    assert found.reason == "one question cannot be resampled"


@pytest.mark.parametrize("groups", [[], [[]], [[], []]])
def test_without_rows_the_reason_is_told(groups: list[list[float]]) -> None:
    found = bootstrap(mean, groups)
    assert (found.value, found.n, found.groups, found.reason) == (None, 0, 0, "no values")


def test_an_undefined_figure_has_its_reason() -> None:
    found = bootstrap(kappa, [[Row(True, True)], [Row(True, True)]])
    assert found.value is None
    assert "chance agrees fully" in found.reason


def test_resamples_without_the_figure_are_left_out_and_counted() -> None:
    groups = [[Row(True, True)]] * 3 + [[Row(False, False)]]
    found = bootstrap(kappa, groups, n=400)
    assert found.value == 1
    # One class only in about (3/4)^4 of the draws.
    assert 220 < found.resamples < 320


def test_mostly_undefined_resamples_give_no_interval() -> None:
    def rarely(values: Sequence[float]) -> float | Undefined:
        return 1.0 if len(set(values)) == 6 else Undefined("not all values")

    found = bootstrap(rarely, [[float(n)] for n in range(6)], n=100)
    assert found.value == 1
    assert found.low is None
    assert "of 100 resamples" in found.reason


def test_nan_is_a_fault_and_not_a_figure() -> None:
    with pytest.raises(ValueError, match="nan"):
        bootstrap(lambda _rows: float("nan"), [[1.0], [2.0]])


@pytest.mark.parametrize(("n", "level"), [(0, 0.95), (10, 0.0), (10, 1.0)])
def test_numbers_out_of_range_are_refused(n: int, level: float) -> None:
    with pytest.raises(ValueError, match="resamples at level"):
        bootstrap(mean, [[1.0], [2.0]], n=n, level=level)


def test_a_figure_of_sums_has_the_interval_of_a_figure_of_rows() -> None:
    generator = Random(3)
    sizes = [generator.randint(0, 4) for _ in range(60)]
    groups = [
        [Row(generator.random() < 0.6, generator.random() < 0.5) for _ in range(size)]
        for size in sizes
    ]
    cells = {(True, True): 0, (False, True): 1, (True, False): 2, (False, False): 3}
    counts = []
    for group in groups:
        counted = [0, 0, 0, 0]
        for row in group:
            counted[cells[row.label, row.verdict]] += 1
        counts.append(counted)
    for of_rows, of_sums in ((kappa, kappa_of), (accuracy, accuracy_of)):
        whole = bootstrap(of_rows, groups, n=2000)
        fast = bootstrap_counts(of_sums, counts, n=2000)
        assert fast.value == whole.value
        assert (fast.n, fast.groups) == (whole.n, whole.groups)
        assert fast.low == pytest.approx(whole.low, abs=0.02)
        assert fast.high == pytest.approx(whole.high, abs=0.02)


@pytest.mark.parametrize(
    "counts", [[], [[0, 0, 0, 0]], [[1, 0, 0, 1]], [[2, 0, 0, 0], [3, 0, 0, 0]]]
)
def test_a_figure_of_sums_says_why_there_is_none(counts: list[list[int]]) -> None:
    found = bootstrap_counts(kappa_of, counts, n=10)
    assert found.low is None
    assert found.reason
