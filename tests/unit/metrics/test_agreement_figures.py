"""Figures of agreement against hand-computed values and scikit-learn."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, cohen_kappa_score, f1_score, roc_auc_score

from offline_judge.domain.scores import Confusion
from offline_judge.metrics.agreement import (
    Corrected,
    Row,
    accuracy,
    auroc,
    confusion,
    corrected_share,
    kappa,
    macro_f1,
    sensitivity,
    share_correct,
    share_labelled_correct,
    specificity,
)
from offline_judge.metrics.bootstrap import Undefined

# 4 called correct by both, 2 by the judge only, 1 by people only, 3 by neither.
WORKED = [
    *[Row(True, True, 0.9)] * 4,
    *[Row(False, True, 0.6)] * 2,
    Row(True, False, 0.3),
    *[Row(False, False, 0.1)] * 3,
]
ROWS = st.lists(
    st.builds(Row, st.booleans(), st.booleans(), st.sampled_from([0.0, 0.2, 0.5, 0.7, 1.0])),
    min_size=1,
    max_size=30,
)


def test_the_worked_example_by_hand() -> None:
    assert confusion(WORKED) == Confusion(
        true_positive=4, false_positive=2, false_negative=1, true_negative=3
    )
    assert accuracy(WORKED) == pytest.approx(0.7)
    assert kappa(WORKED) == pytest.approx(0.4)  # (.7 - .5) / (1 - .5)
    assert macro_f1(WORKED) == pytest.approx((8 / 11 + 6 / 9) / 2)
    assert sensitivity(WORKED) == pytest.approx(4 / 5)
    assert specificity(WORKED) == pytest.approx(3 / 5)
    assert share_correct(WORKED) == pytest.approx(0.6)
    assert share_labelled_correct(WORKED) == pytest.approx(0.5)
    assert auroc(WORKED) == pytest.approx((4 * 5 + 3) / 25)


@given(ROWS)
def test_figures_are_those_of_scikit_learn_or_say_why_not(rows: list[Row]) -> None:
    labels, verdicts = [row.label for row in rows], [row.verdict for row in rows]
    assert accuracy(rows) == pytest.approx(accuracy_score(labels, verdicts))
    if len({*labels, *verdicts}) == 2:
        assert kappa(rows) == pytest.approx(cohen_kappa_score(labels, verdicts))
        assert macro_f1(rows) == pytest.approx(f1_score(labels, verdicts, average="macro"))
    else:
        assert isinstance(kappa(rows), Undefined)
        assert isinstance(macro_f1(rows), Undefined)
    if len(set(labels)) == 2:
        expected = roc_auc_score(labels, [row.probability for row in rows])
        assert auroc(rows) == pytest.approx(expected)
    else:
        assert isinstance(auroc(rows), Undefined)


@given(ROWS, st.randoms())
def test_the_order_of_rows_does_not_matter(rows: list[Row], random: Random) -> None:
    shuffled = list(rows)
    random.shuffle(shuffled)
    for figure in (accuracy, kappa, macro_f1, auroc, sensitivity, specificity):
        assert figure(shuffled) == figure(rows)


@pytest.mark.parametrize(
    "figure", [accuracy, kappa, macro_f1, auroc, share_correct, share_labelled_correct]
)
def test_without_rows_a_figure_says_so(
    figure: Callable[[Sequence[Row]], float | Undefined],
) -> None:
    found = figure([])
    assert isinstance(found, Undefined)
    assert "labelled and scored" in found


def test_auroc_says_that_a_probability_is_missing() -> None:
    found = auroc([Row(True, True), Row(False, False)])
    assert isinstance(found, Undefined)
    assert "without a probability" in found


def test_auroc_of_ties_alone_is_a_half() -> None:
    assert auroc([Row(True, True, 0.5), Row(False, True, 0.5)]) == 0.5


def test_the_corrected_share_by_hand_and_back() -> None:
    # A true share of .5 seen through the rates of the worked example is called .6.
    found = corrected_share(0.6, 0.8, 0.6)
    assert isinstance(found, Corrected)
    assert found.value == pytest.approx(0.5)
    assert not found.clipped


@given(st.floats(0, 1), st.floats(0.51, 1), st.floats(0.51, 1))
def test_correcting_undoes_what_the_error_rates_did(share: float, sens: float, spec: float) -> None:
    seen = share * sens + (1 - share) * (1 - spec)
    found = corrected_share(seen, sens, spec)
    assert isinstance(found, Corrected)
    assert found.value == pytest.approx(share, abs=1e-6)


def test_a_corrected_share_outside_the_range_is_clipped_and_told() -> None:
    found = corrected_share(0.1, 0.9, 0.8)
    assert isinstance(found, Corrected)
    assert found.value == 0
    assert found.raw == pytest.approx(-1 / 7)
    assert found.clipped


@pytest.mark.parametrize(("sens", "spec"), [(0.5, 0.5), (0.3, 0.6)])
def test_a_judge_no_better_than_chance_corrects_nothing(sens: float, spec: float) -> None:
    found = corrected_share(0.4, sens, spec)
    assert isinstance(found, Undefined)
    assert "chance" in found


def test_no_figure_is_ever_nan() -> None:
    one = [Row(True, True, 1.0)]
    for figure in (accuracy, kappa, macro_f1, auroc, sensitivity, specificity):
        found = figure(one)
        assert isinstance(found, Undefined) or math.isfinite(found)
