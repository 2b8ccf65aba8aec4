"""Fitting maps and thresholds: against scikit-learn, by hand, and where nothing can be fitted."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.isotonic import IsotonicRegression

from offline_judge.calibration.fitting import (
    CannotFitError,
    Labelled,
    cross_fit,
    error_rates,
    fit,
)
from offline_judge.calibration.thresholds import AIMS, best_threshold
from offline_judge.domain.calibration import Kind, log_odds
from offline_judge.metrics.agreement import Row, accuracy, kappa, macro_f1
from offline_judge.metrics.bootstrap import Undefined

PROBABILITIES = st.one_of(st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0]), st.floats(0, 1))
PAIRS = st.lists(st.tuples(st.booleans(), PROBABILITIES), min_size=2, max_size=25)


def samples(pairs: list[tuple[bool, float]], each: int = 1) -> list[Labelled]:
    return [Labelled(f"q{n // each}", label, share) for n, (label, share) in enumerate(pairs)]


def over_confident(n: int = 200) -> list[Labelled]:
    """A judge that says yes too often: from .6 on people agree half of the time."""
    pairs = [(n % 10 < 9 if n % 2 else n % 10 < 2, 0.95 if n % 2 else 0.7) for n in range(n)]
    return samples(pairs, each=2)


@pytest.mark.parametrize(
    ("aim", "figure"), [("kappa", kappa), ("accuracy", accuracy), ("macro_f1", macro_f1)]
)
@given(pairs=PAIRS)
def test_a_threshold_is_as_good_as_the_best_of_all(
    aim: str,
    figure: Callable[[Sequence[Row]], float | Undefined],
    pairs: list[tuple[bool, float]],
) -> None:
    labels, shares = [label for label, _ in pairs], [share for _, share in pairs]

    def at(threshold: float) -> float:
        value = figure([Row(label, share >= threshold) for label, share in pairs])
        return -math.inf if isinstance(value, Undefined) else value

    found = best_threshold(labels, shares, aim)
    every = [0.0, 0.5, 1.0, *shares, *(math.nextafter(share, 2) for share in shares)]
    assert 0 <= found <= 1
    assert at(found) == pytest.approx(max(at(t) for t in every if t <= 1))


def test_a_threshold_stays_at_a_half_where_moving_gains_nothing() -> None:
    assert best_threshold([False, True], [0.2, 0.9], "kappa") == 0.5
    assert best_threshold([False, True], [0.6, 0.9], "kappa") == pytest.approx(0.75)


def test_the_aim_share_brings_the_share_called_correct_to_peoples() -> None:
    labels, shares = [True, False, False, False], [0.6, 0.9, 0.8, 0.7]
    threshold = best_threshold(labels, shares, "share")
    assert sum(share >= threshold for share in shares) == 1


def test_neighbouring_floats_are_parted() -> None:
    low = 0.7
    high = math.nextafter(low, 1)
    threshold = best_threshold([False, True], [low, high], "accuracy")
    assert low < threshold <= high


@given(PAIRS, PROBABILITIES)
def test_the_isotonic_map_is_that_of_scikit_learn(
    pairs: list[tuple[bool, float]], probability: float
) -> None:
    pairs = [*pairs, (True, 0.4), (False, 0.6)]
    found = fit(samples(pairs), "isotonic")
    model = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip")
    model.fit([share for _, share in pairs], [float(label) for label, _ in pairs])
    expected = float(model.predict([probability])[0])
    assert found.map(probability) == pytest.approx(expected, abs=1e-9)


@given(PAIRS, st.sampled_from(["threshold", "isotonic"]))
def test_maps_rise_and_stay_in_range(pairs: list[tuple[bool, float]], kind: Kind) -> None:
    found = fit(samples([*pairs, (True, 0.4), (False, 0.6)]), kind)
    mapped = [found.map(step / 50) for step in range(51)]
    assert mapped == sorted(mapped)
    assert all(0 <= value <= 1 for value in mapped)


def test_platt_finds_the_line_that_made_the_labels() -> None:
    generator = np.random.default_rng(0)
    drawn = generator.uniform(0.02, 0.98, 20_000).tolist()
    chance = [1 / (1 + math.exp(-(0.5 * log_odds(p) - 1))) for p in drawn]
    labels = (generator.uniform(size=20_000) < np.array(chance)).tolist()
    found = fit(samples(list(zip(labels, drawn, strict=True))), "platt")
    assert found.slope == pytest.approx(0.5, abs=0.05)
    assert found.intercept == pytest.approx(-1, abs=0.05)


def test_platt_minimises_the_loss_of_platts_targets() -> None:
    pairs = [(True, 0.9), (True, 0.6), (False, 0.7), (False, 0.2), (False, 0.4)]
    found = fit(samples(pairs), "platt")
    assert found.slope is not None
    assert found.intercept is not None
    # At the minimum both derivatives vanish: sums of (map - target) and of the same by log-odds.
    gaps = [found.map(share) - (3 / 4 if label else 1 / 5) for label, share in pairs]
    assert sum(gaps) == pytest.approx(0, abs=1e-4)
    odds = [log_odds(share) for _, share in pairs]
    assert sum(g * x for g, x in zip(gaps, odds, strict=True)) == pytest.approx(0, abs=1e-4)


def test_platt_stays_finite_where_the_classes_are_parted() -> None:
    found = fit(samples([(False, 0.0), (False, 0.1), (True, 0.9), (True, 1.0)]), "platt")
    assert found.slope is not None
    assert 0 < found.slope < 10
    assert found.map(1.0) < 1


@pytest.mark.parametrize("kind", ["threshold", "isotonic", "platt"])
@pytest.mark.parametrize("labels", [[], [True, True], [False]])
def test_one_label_fits_nothing(kind: Kind, labels: list[bool]) -> None:
    with pytest.raises(CannotFitError, match="both labels are needed"):
        fit(samples([(label, 0.5) for label in labels]), kind)


@pytest.mark.parametrize("aim", sorted(AIMS))
def test_a_threshold_may_be_fitted_on_top_of_a_map(aim: str) -> None:
    found = fit(over_confident(), "platt", aim)
    assert found.verdict(0.95)
    assert not found.verdict(0.7)


def test_every_sample_is_read_by_a_map_of_other_questions() -> None:
    # Each question is a class of its own kind: only seeing the sample itself could tell.
    pairs = [(n % 2 == 0, 0.5 + n / 1000) for n in range(100)]
    seen = fit(samples(pairs), "isotonic", "accuracy")
    own = sum(seen.verdict(share) == label for label, share in pairs)
    tried = cross_fit(samples(pairs), "isotonic", "accuracy")
    unseen = sum(row.label == row.verdict for row in tried.rows)
    assert len(tried.rows) == 100
    assert unseen < own


def test_cross_fitting_does_not_depend_on_the_order() -> None:
    given_order = over_confident()
    forward = cross_fit(given_order, "platt").rows
    backward = cross_fit(given_order[::-1], "platt").rows[::-1]
    assert [row.verdict for row in forward] == [row.verdict for row in backward]


def test_one_question_cannot_be_cross_fitted() -> None:
    tried = cross_fit([Labelled("q", True, 0.9), Labelled("q", False, 0.1)], "threshold")
    assert tried.rows == ()
    assert "one question" in tried.reason
    assert error_rates(tried.rows, 1, tried.reason).reason == tried.reason


def test_a_part_without_both_labels_is_told() -> None:
    tried = cross_fit(samples([(True, 0.9), (False, 0.1)]), "isotonic")
    assert tried.rows == ()
    assert "both labels are needed" in tried.reason


def test_error_rates_by_hand() -> None:
    rows = [Row(True, True)] * 3 + [Row(True, False)] + [Row(False, True)] + [Row(False, False)]
    found = error_rates(rows, 5)
    assert (found.sensitivity, found.specificity) == (0.75, 0.5)
    assert (found.n, found.groups, found.reason) == (6, 5, "")


def test_a_rate_without_its_class_is_undefined_with_the_reason() -> None:
    found = error_rates([Row(True, True)], 1)
    assert (found.sensitivity, found.specificity) == (1.0, None)
    assert "every sample correct" in found.reason
