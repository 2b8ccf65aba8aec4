"""Fitting how a judge's probability is read, and trying the fit on questions it has not seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from offline_judge.calibration.thresholds import best_threshold
from offline_judge.domain.calibration import ErrorRates, Kind, ScoreMap, log_odds
from offline_judge.metrics.agreement import Row, sensitivity, specificity
from offline_judge.metrics.bootstrap import Undefined
from offline_judge.metrics.folds import FOLDS, fold_of_questions

_UNBOUND = 1e9
"""scikit-learn's C, the inverse of its penalty: so large that there is none."""


class Labelled(NamedTuple):
    """A sample with a label: its question's key, what people said, what the judge gave it."""

    question: str
    label: bool
    probability: float


@dataclass(frozen=True)
class Tried:
    """Samples as a map reads them that was fitted on other questions, or why there is none.

    Attributes:
        rows: Label, verdict and mapped probability of each sample, in the order given.
        reason: Why the fit could not be tried; then there are no rows.
    """

    rows: tuple[Row, ...] = ()
    reason: str = ""


class CannotFitError(ValueError):
    """These samples fit nothing; says why."""


def fit(samples: Sequence[Labelled], kind: Kind, aim: str = "") -> ScoreMap:
    """Fit a map, then a threshold on what it gives.

    `isotonic` is the rising step function of least squares. `platt` is a logistic regression on
    log-odds with Platt's smoothed targets, (n+ + 1) / (n+ + 2) and 1 / (n- + 2), and no penalty
    ("Probabilistic outputs for support vector machines", 1999): parted classes then keep it
    finite.

    Args:
        samples: At least one of each label.
        kind: What to fit.
        aim: What the threshold shall be best by, a name in `thresholds.AIMS`; empty leaves it
            at .5, which `threshold` alone cannot.

    Raises:
        CannotFitError: no samples, or all labels are the same.
    """
    labels = [sample.label for sample in samples]
    if len(set(labels)) < 2:
        raise CannotFitError("both labels are needed, and people gave " + _given(labels))
    if kind == "isotonic":
        made = _isotonic(samples)
    elif kind == "platt":
        made = _platt(samples)
    else:
        made = ScoreMap(kind=kind)
        aim = aim or "kappa"
    if not aim:
        return made
    mapped = [made.map(sample.probability) for sample in samples]
    return made.model_copy(update={"threshold": best_threshold(labels, mapped, aim)})


def cross_fit(samples: Sequence[Labelled], kind: Kind, aim: str = "") -> Tried:
    """Read each sample by a map that was fitted on the other folds of questions."""
    fold = fold_of_questions(sample.question for sample in samples)
    parts = [fold[sample.question] for sample in samples]
    if len(set(parts)) < 2:
        return Tried(reason="one question cannot be parted into what is fitted and what is tried")
    maps = {}
    for part in sorted(set(parts)):
        others = [sample for sample, own in zip(samples, parts, strict=True) if own != part]
        try:
            maps[part] = fit(others, kind, aim)
        except CannotFitError as error:
            return Tried(reason=f"without one of {min(FOLDS, len(fold))} parts, {error}")
    rows = []
    for sample, part in zip(samples, parts, strict=True):
        mapped = maps[part].map(sample.probability)
        rows.append(Row(sample.label, mapped >= maps[part].threshold, mapped))
    return Tried(tuple(rows))


def error_rates(rows: Sequence[Row], groups: int, reason: str = "") -> ErrorRates:
    """How the verdicts of these rows err; `reason` where there are no rows to tell."""
    if reason:
        return ErrorRates(reason=reason)
    rates = {"sensitivity": sensitivity(rows), "specificity": specificity(rows)}
    reasons = [str(rate) for rate in rates.values() if isinstance(rate, Undefined)]
    known = {name: rate for name, rate in rates.items() if not isinstance(rate, Undefined)}
    return ErrorRates(
        sensitivity=known.get("sensitivity"),
        specificity=known.get("specificity"),
        n=len(rows),
        groups=groups,
        reason="; ".join(dict.fromkeys(reasons)),
    )


def _isotonic(samples: Sequence[Labelled]) -> ScoreMap:
    from sklearn.isotonic import IsotonicRegression

    model = IsotonicRegression(y_min=0, y_max=1, increasing=True, out_of_bounds="clip")
    model.fit([sample.probability for sample in samples], [float(s.label) for s in samples])
    pairs = zip(model.X_thresholds_.tolist(), model.y_thresholds_.tolist(), strict=True)
    # Rounding can leave a value an ulp outside, or below the one before it.
    points: list[tuple[float, float]] = []
    for x, y in pairs:
        floor = points[-1][1] if points else 0.0
        points.append((x, min(1.0, max(floor, y))))
    return ScoreMap(kind="isotonic", points=tuple(points))


def _platt(samples: Sequence[Labelled]) -> ScoreMap:
    from sklearn.linear_model import LogisticRegression

    positives = sum(sample.label for sample in samples)
    targets = {
        True: (positives + 1) / (positives + 2),
        False: 1 / (len(samples) - positives + 2),
    }
    # A target between 0 and 1 is the sample taken twice, once a class, with those weights.
    inputs = [[log_odds(sample.probability)] for sample in samples]
    weights = [targets[sample.label] for sample in samples]
    model = LogisticRegression(C=_UNBOUND, tol=1e-8, max_iter=1000)
    model.fit(
        inputs + inputs,
        [1] * len(samples) + [0] * len(samples),
        sample_weight=weights + [1 - weight for weight in weights],
    )
    return ScoreMap(
        kind="platt", slope=float(model.coef_[0][0]), intercept=float(model.intercept_[0])
    )


def _given(labels: Sequence[bool]) -> str:
    if not labels:
        return "none"
    return f"only `{'correct' if labels[0] else 'incorrect'}`, {len(labels)} times"
