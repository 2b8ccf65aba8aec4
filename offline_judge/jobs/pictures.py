"""What of a run people would rather look at than read: agreement, reliability, throughput."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from offline_judge.domain.pictures import RunFigures, Throughput
from offline_judge.metrics.agreement import accuracy_of, kappa_of
from offline_judge.metrics.bootstrap import bootstrap_counts
from offline_judge.metrics.reliability import reliability
from offline_judge.runs.store import RunDirectory

RESAMPLES = 500
"""Of questions, for an interval that is looked at; `score` takes more."""
POINTS = 60
"""Points of a line over time at most."""


def run_figures(directory: RunDirectory) -> RunFigures:
    """The figures, from the index alone.

    Questions are told apart by their beginnings, as the index keeps them.

    Raises:
        StorageError: the run's files are damaged.
    """
    found = directory.index().material()
    labels = [label for label, _ in found.readings]
    return RunFigures(
        kappa=bootstrap_counts(kappa_of, found.cells, n=RESAMPLES),
        accuracy=bootstrap_counts(accuracy_of, found.cells, n=RESAMPLES),
        reliability=reliability(labels, [share for _, share in found.readings]),
        throughput=throughput(found.ends),
    )


def throughput(ends: Sequence[float]) -> Throughput:
    """How many samples ended when; `ends` in seconds, in order."""
    if not ends:
        return Throughput(1.0, ())
    stretch = max(1.0, (ends[-1] - ends[0]) / POINTS)
    places = Counter(int((end - ends[0]) // stretch) for end in ends)
    return Throughput(stretch, tuple(places[place] for place in range(max(places) + 1)))
