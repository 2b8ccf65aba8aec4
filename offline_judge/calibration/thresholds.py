"""The threshold at which verdicts agree best with people."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby

from offline_judge.metrics.agreement import kappa_of, macro_f1_of
from offline_judge.metrics.bootstrap import Undefined

Cells = tuple[int, int, int, int]
"""Samples called correct by both, by the judge only, by people only, by neither."""


def _accuracy(cells: Cells) -> float | Undefined:
    both, _, _, neither = cells
    return (both + neither) / sum(cells)


def _share(cells: Cells) -> float | Undefined:
    _, judge_only, people_only, _ = cells
    return -abs(judge_only - people_only) / sum(cells)


AIMS: dict[str, Callable[[Cells], float | Undefined]] = {
    "kappa": lambda cells: kappa_of(*cells),
    "accuracy": _accuracy,
    "macro_f1": lambda cells: macro_f1_of(*cells),
    "share": _share,
}
"""What a threshold can be best by; `share` is how near the share called correct is to people's."""


def best_threshold(labels: Sequence[bool], probabilities: Sequence[float], aim: str) -> float:
    """The threshold whose verdicts (correct from it on) are best by `aim`.

    One is tried in each gap between neighbouring probabilities: .5 where it lies in the gap, else
    the middle. Of equally good ones the nearest to .5 is taken, so that it only moves for a gain.

    Raises:
        ValueError: no samples.
    """
    if not labels:
        raise ValueError("no samples to fit a threshold on")
    figure = AIMS[aim]
    best, chosen = -math.inf, 0.5
    for threshold, cells in _cuts(labels, probabilities):
        value = figure(cells)
        if isinstance(value, Undefined):
            continue
        nearer = abs(threshold - 0.5) < abs(chosen - 0.5)
        if value > best or (value == best and nearer):
            best, chosen = value, threshold
    return chosen


def _cuts(labels: Sequence[bool], probabilities: Sequence[float]) -> Iterator[tuple[float, Cells]]:
    """Each threshold that parts the samples in another way, with what it comes to."""
    positives, total = sum(labels), len(labels)
    ordered = sorted(zip(probabilities, labels, strict=True))
    values = sorted(set(probabilities))
    yield _between(0.0, values[0]), (positives, total - positives, 0, 0)
    people_only = neither = 0
    for (value, members), above in zip(groupby(ordered, _first), [*values[1:], 1.0], strict=True):
        for _, label in members:
            people_only += label
            neither += not label
        if value < 1:  # no threshold lies above a probability of 1
            cells = (positives - people_only, total - positives - neither, people_only, neither)
            yield _between(value, above), cells


def _first(pair: tuple[float, bool]) -> float:
    return pair[0]


def _between(low: float, high: float) -> float:
    """A threshold that `high` reaches and `low` does not, but for a `low` of 0 below all."""
    if low < 0.5 <= high:
        return 0.5
    middle = (low + high) / 2
    return middle if low < middle else high
