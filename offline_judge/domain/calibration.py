"""A calibration: how a judge's probability is read, and which judge it was fitted for."""

from __future__ import annotations

import math
from bisect import bisect_right
from itertools import pairwise
from typing import Any, Literal

from pydantic import Field, model_validator

from offline_judge.domain.base import Frozen, content_hash
from offline_judge.domain.judgment import Judgment

Kind = Literal["threshold", "isotonic", "platt"]

EDGE = 1e-6
"""Probabilities nearer to 0 or 1 than this count as this far away where log-odds are taken."""


HASH_DIGITS = 12
"""Of a question's hash, as a calibration keeps it."""


class ErrorRates(Frozen):
    """How a judge errs on samples people labelled.

    Attributes:
        sensitivity: Share it calls correct of what people call correct; None where undefined.
        specificity: Share it calls incorrect of what people call incorrect; None where undefined.
        n: Labelled samples these stand on.
        groups: Questions of these samples.
        reason: Why a rate is undefined.
    """

    sensitivity: float | None = Field(default=None, ge=0, le=1)
    specificity: float | None = Field(default=None, ge=0, le=1)
    n: int = 0
    groups: int = 0
    reason: str = ""


class JudgeIdentity(Frozen):
    """What made the probabilities: all that shapes them.

    Attributes:
        name: Card of the judge's weights, for people.
        sha256: Hash of the weights.
        method: Name of the method.
        options: Its options, without those that act after the verdict is read.
        prompts: Template name to source hash, also without what comes after the verdict.
        search: What was searched. Recorded for people: another corpus is another set of
            evidence and not another judge.
    """

    name: str
    sha256: str
    method: str
    options: dict[str, Any] = Field(default_factory=dict)
    prompts: dict[str, str] = Field(default_factory=dict)
    search: dict[str, Any] = Field(default_factory=dict)


class ScoreMap(Frozen):
    """How a probability is read.

    `threshold` moves the verdict and leaves the probability as it is. `isotonic` and `platt` map
    the probability, and the verdict is read from the mapped one.

    Attributes:
        kind: Which of the three.
        threshold: A verdict is "correct" from this (mapped) probability on.
        points: Of `isotonic`: probability and what it maps to, both rising; straight lines
            between them, the ends' values beyond them.
        slope: Of `platt`: factor of the log-odds.
        intercept: Of `platt`: added to them.
    """

    kind: Kind
    threshold: float = Field(default=0.5, ge=0, le=1)
    points: tuple[tuple[float, float], ...] = ()
    slope: float | None = None
    intercept: float | None = None

    @model_validator(mode="after")
    def _has_what_its_kind_needs(self) -> ScoreMap:
        if (self.kind == "isotonic") != bool(self.points):
            raise ValueError("`points` belong to `isotonic` and to nothing else")
        lines = (self.slope, self.intercept)
        if any((value is None) == (self.kind == "platt") for value in lines):
            raise ValueError("`slope` and `intercept` belong to `platt` and to nothing else")
        if any(not 0 <= value <= 1 for point in self.points for value in point):
            raise ValueError("`points` lie outside [0, 1]")
        if any(a[0] >= b[0] or a[1] > b[1] for a, b in pairwise(self.points)):
            raise ValueError("`points` do not rise")
        return self

    def map(self, probability: float) -> float:
        """The calibrated probability; with a threshold alone, the same."""
        if self.kind == "isotonic":
            return interpolate(self.points, probability)
        if self.slope is not None and self.intercept is not None:
            return sigmoid(self.slope * log_odds(probability) + self.intercept)
        return probability

    def verdict(self, probability: float) -> bool:
        """The calibrated verdict of a probability that is not mapped yet."""
        return self.map(probability) >= self.threshold


class Calibration(Frozen):
    """How to read a judge's probability of "correct", and which judge that holds for.

    Attributes:
        version: Of this file's form.
        reading: How a probability is read.
        optimised: The figure the threshold is best by on the samples it was fitted on; empty
            where it was not fitted.
        n: Labelled samples it was fitted on.
        groups: Questions of these samples.
        labels_sha256: Hash of the file of labels, or of the data file that held them.
        questions: The first digits of these questions' hashes, so that figures over questions
            it was fitted on can be told from others.
        judge: Whose probabilities these were.
        rates: Error rates of the calibrated verdicts, each sample read by a map that was fitted
            on other questions.
        raw_rates: Error rates of the verdicts the judge gave by itself.
    """

    version: Literal[1] = 1
    reading: ScoreMap
    optimised: str = ""
    n: int = Field(ge=1)
    groups: int = Field(ge=1)
    labels_sha256: str
    questions: tuple[str, ...] = ()
    judge: JudgeIdentity
    rates: ErrorRates = ErrorRates()
    raw_rates: ErrorRates = ErrorRates()

    @property
    def sha256(self) -> str:
        """Hash of the whole content."""
        return content_hash(self.model_dump(mode="json"))

    def fitted_on(self, question: str) -> bool:
        """Whether it was fitted on answers to the question with this hash."""
        return question[:HASH_DIGITS] in self.questions

    def read(self, judgment: Judgment) -> Judgment:
        """The judgment with the calibrated reading beside its own, where it has a probability."""
        if judgment.probability is None:
            return judgment
        mapped = self.reading.map(judgment.probability)
        return judgment.model_copy(
            update={
                "calibrated_verdict": mapped >= self.reading.threshold,
                "calibrated_probability": mapped,
            }
        )


def log_odds(probability: float) -> float:
    """ln(p / (1 - p)), with p kept away from 0 and 1 by `EDGE`."""
    kept = min(1 - EDGE, max(EDGE, probability))
    return math.log(kept / (1 - kept))


def sigmoid(value: float) -> float:
    """1 / (1 + exp(-value)), also where exp would overflow."""
    if value >= 0:
        return 1 / (1 + math.exp(-value))
    return math.exp(value) / (1 + math.exp(value))


def interpolate(points: tuple[tuple[float, float], ...], x: float) -> float:
    """Straight lines between points of rising x, the ends' values beyond them."""
    place = bisect_right(points, x, key=lambda point: point[0])
    if place == 0:
        return points[0][1]
    if place == len(points):
        return points[-1][1]
    (left, low), (right, high) = points[place - 1], points[place]
    # Rounding must not lead out of the two ends.
    return min(high, max(low, low + (high - low) * (x - left) / (right - left)))
