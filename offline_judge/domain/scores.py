"""How well a judge agrees with people: figures, each with its interval or why it has none."""

from __future__ import annotations

from offline_judge.domain.base import Frozen


class Interval(Frozen):
    """A figure with a percentile bootstrap interval over questions.

    Attributes:
        value: The figure over all rows; None where it is undefined.
        low: Lower end; None where the interval is undefined, which it may be beside a value.
        high: Upper end; None together with `low`.
        n: Rows the figure stands on; of a paired difference, those of both sides.
        groups: Questions the rows belong to, which are what is resampled.
        level: Coverage, .95 for the interval from the 2.5th to the 97.5th percentile.
        resamples: Resamples the ends stand on; those in which the figure was undefined are
            left out of it.
        reason: Why value or interval are undefined; empty where both are there.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    n: int = 0
    groups: int = 0
    level: float = 0.95
    resamples: int = 0
    reason: str = ""


class Confusion(Frozen):
    """How often people and judge said what: first what the judge said, and whether rightly."""

    true_positive: int = 0
    false_positive: int = 0
    false_negative: int = 0
    true_negative: int = 0


class Bin(Frozen):
    """Samples whose probability lies in [low, high): their mean, and what people say of them."""

    low: float
    high: float
    n: int
    mean_probability: float
    share_correct: float


class Reliability(Frozen):
    """Bins that hold samples, and the expected calibration error over them.

    `error` is in [0, 1], and None without samples.
    """

    bins: tuple[Bin, ...] = ()
    n: int = 0
    error: float | None = None
