"""Figures of a run that are looked at rather than read."""

from __future__ import annotations

from dataclasses import dataclass

from offline_judge.domain.scores import Interval, Reliability


@dataclass(frozen=True)
class Throughput:
    """Samples that ended in equal stretches of time.

    Attributes:
        stretch_s: Seconds of one.
        counts: Samples that ended in each, from the first end on.
    """

    stretch_s: float
    counts: tuple[int, ...]


@dataclass(frozen=True)
class RunFigures:
    """Figures of a run by the labels of its data.

    Attributes:
        kappa: Cohen's kappa with its interval.
        accuracy: Likewise.
        reliability: How often people say "correct" where the judge gives a probability.
        throughput: Samples over time; pauses and the time between two processes included.
    """

    kappa: Interval
    accuracy: Interval
    reliability: Reliability
    throughput: Throughput
