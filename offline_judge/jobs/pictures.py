"""What of a run people would rather look at than read: agreement, reliability, throughput."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime

from offline_judge.domain.pictures import RunFigures, Throughput
from offline_judge.domain.run_rows import UNFINISHED, IndexRow
from offline_judge.metrics.agreement import Row, accuracy, kappa
from offline_judge.metrics.bootstrap import bootstrap
from offline_judge.metrics.reliability import reliability
from offline_judge.runs.store import RunDirectory

RESAMPLES, LEAST = 500, 50
"""Of questions, for an interval that is looked at; of large runs fewer. `score` takes more."""
_DRAWN = 2_000_000
"""Rows that are drawn in all resamples together, about."""
POINTS = 60
"""Points of a line over time at most."""


def run_figures(directory: RunDirectory) -> RunFigures:
    """The figures, from the index alone.

    Questions are told apart by their beginnings, as the index keeps them.

    Raises:
        StorageError: the run's files are damaged.
    """
    rows = directory.index().rows()
    groups: dict[str, list[Row]] = {}
    pairs: list[tuple[bool, float]] = []
    for row in rows:
        if row.label is None or row.verdict is None or row.probability is None:
            continue
        groups.setdefault(row.question, []).append(Row(row.label, row.verdict, row.probability))
        pairs.append((row.label, row.probability))
    grouped = list(groups.values())
    resamples = min(RESAMPLES, max(LEAST, _DRAWN // max(1, len(pairs))))
    return RunFigures(
        kappa=bootstrap(kappa, grouped, n=resamples),
        accuracy=bootstrap(accuracy, grouped, n=resamples),
        reliability=reliability([label for label, _ in pairs], [share for _, share in pairs]),
        throughput=throughput(rows),
    )


def throughput(rows: Sequence[IndexRow]) -> Throughput:
    """How many samples ended when."""
    ends = sorted(_seconds(row.time) for row in rows if row.outcome != UNFINISHED and row.time)
    if not ends:
        return Throughput(1.0, ())
    stretch = max(1.0, (ends[-1] - ends[0]) / POINTS)
    places = Counter(int((end - ends[0]) // stretch) for end in ends)
    return Throughput(stretch, tuple(places[place] for place in range(max(places) + 1)))


def _seconds(time: str) -> float:
    return datetime.fromisoformat(time).timestamp()
