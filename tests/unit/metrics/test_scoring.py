"""All figures of a run at once, and the corrected share by hand and cross-fitted."""

from __future__ import annotations

import json
from random import Random

import pytest

from offline_judge.domain.calibration import ErrorRates
from offline_judge.domain.scores import Interval
from offline_judge.metrics.agreement import Corrected, Row
from offline_judge.metrics.bootstrap import Undefined
from offline_judge.metrics.scoring import STATISTICS, cross_corrected, figures

RATES = ErrorRates(sensitivity=0.8, specificity=0.6, n=50, groups=20)


def judged(n: int = 400, sensitivity: float = 0.8, specificity: float = 0.6) -> list[list[Row]]:
    """Questions of two responses each; people call 40 % correct."""
    random = Random(0)
    groups = []
    for question in range(n // 2):
        rows = []
        for _ in range(2):
            label = random.random() < 0.4
            verdict = random.random() < (sensitivity if label else 1 - specificity)
            rows.append(Row(label, verdict, 0.8 if verdict else 0.2, question % 5))
        groups.append(rows)
    return groups


def intervals(groups: list[list[Row]]) -> dict[str, Interval]:
    found = figures(groups, resamples=20)
    return {name: getattr(found, name) for name in STATISTICS} | {
        "corrected": found.corrected.share
    }


def test_a_known_error_is_taken_out_by_hand() -> None:
    groups = [[Row(True, True)]] * 6 + [[Row(False, False)]] * 4
    found = figures(groups, RATES, "calibration", resamples=50).corrected
    assert found.raw == pytest.approx(0.5)  # (.6 + .6 - 1) / (.8 + .6 - 1)
    assert found.share.value == pytest.approx(0.5)
    assert (found.source, found.sensitivity, found.specificity, found.n) == (
        "calibration",
        0.8,
        0.6,
        50,
    )
    assert not found.clipped


def test_a_share_beyond_the_range_is_clipped_and_told() -> None:
    found = figures([[Row(True, True)]] * 5, RATES, "held-out", resamples=20).corrected
    assert found.raw == pytest.approx(1.5)
    assert found.share.value == 1
    assert found.clipped


def test_unknown_rates_leave_the_corrected_share_undefined() -> None:
    rates = ErrorRates(reason="people call every sample correct")
    found = figures([[Row(True, True)]] * 3, rates, "calibration", resamples=20).corrected
    assert found.share.value is None
    assert "people call every sample correct" in found.share.reason


def test_a_judge_no_better_than_chance_leaves_it_undefined() -> None:
    rates = ErrorRates(sensitivity=0.4, specificity=0.6, n=9)
    found = figures([[Row(True, True)]] * 3, rates, "held-out", resamples=20).corrected
    assert found.share.value is None
    assert "chance" in found.share.reason


def test_cross_fitted_rates_bring_the_share_near_peoples() -> None:
    groups = judged()
    found = figures(groups, resamples=100)
    assert found.share_correct.value is not None
    assert found.share_people.value is not None
    assert found.corrected.share.value is not None
    assert abs(found.share_correct.value - found.share_people.value) > 0.1
    assert abs(found.corrected.share.value - found.share_people.value) < 0.05
    assert found.corrected.source == "cross-fitted"
    assert found.share_gap.value == pytest.approx(
        found.share_correct.value - found.share_people.value
    )


def test_cross_fitting_is_not_people_s_share_by_construction() -> None:
    # In one fold the judge errs the other way round; rates of the rest cannot know.
    odd = [Row(True, False, 0.1, 0), Row(True, False, 0.1, 0)]
    rest = [Row(True, True, 0.9, 1)] * 4 + [Row(False, False, 0.1, 1)] * 4
    found = cross_corrected([*odd, *rest, Row(False, False, 0.1, 0), Row(True, True, 0.9, 0)])
    assert isinstance(found, Corrected)
    assert found.value != pytest.approx(7 / 12)


def test_one_fold_has_no_other_to_learn_from() -> None:
    found = cross_corrected([Row(True, True, 0.9, 2), Row(False, False, 0.1, 2)])
    assert isinstance(found, Undefined)
    assert "no other" in found


def test_rates_of_one_class_cannot_be_learnt() -> None:
    found = cross_corrected([Row(True, True, 0.9, 0), Row(False, False, 0.1, 1)])
    assert isinstance(found, Undefined)


@pytest.mark.parametrize(
    "groups",
    [
        [],
        [[Row(True, True, 0.9)]],
        [[Row(True, True, 0.9)], [Row(True, True, 0.8, 1)]],
        [[Row(False, True, 0.9)], [Row(False, True, 0.8, 1)]],
    ],
    ids=["nothing scored", "one sample", "one class", "one class and always wrong"],
)
def test_degenerate_cases_are_undefined_with_a_reason_and_never_nan(
    groups: list[list[Row]],
) -> None:
    for name, found in intervals(groups).items():
        if found.value is None or found.low is None:
            assert found.reason, name
    json.dumps(figures(groups, resamples=20).model_dump(), allow_nan=False)


def test_one_sample_has_an_accuracy_without_an_interval() -> None:
    found = intervals([[Row(True, True, 0.9)]])
    assert found["accuracy"].value == 1
    assert found["accuracy"].low is None
    assert found["kappa"].value is None
    assert found["auroc"].value is None


def test_the_order_of_questions_changes_nothing() -> None:
    groups = judged(60)
    shuffled = list(groups)
    Random(1).shuffle(shuffled)
    assert figures(shuffled, resamples=50) == figures(groups, resamples=50)
