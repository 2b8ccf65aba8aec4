"""Percentile bootstrap intervals that resample whole questions.

Responses to one question succeed and fail together, so resampling single rows would make an
interval too narrow. Method: the percentile bootstrap over clusters (Efron and Tibshirani, "An
Introduction to the Bootstrap", 1993, chapters 8 and 13).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import chain
from typing import TypeVar

from offline_judge.domain.scores import Interval

Item = TypeVar("Item")
Groups = Sequence[Sequence[Item]]

RESAMPLES = 2000
LEVEL = 0.95


class Undefined(str):
    """What a statistic gives where it has no value: the reason, for people."""

    __slots__ = ()


def bootstrap(
    statistic: Callable[[Sequence[Item]], float | Undefined],
    groups: Groups[Item],
    *,
    n: int = RESAMPLES,
    seed: int = 0,
    level: float = LEVEL,
) -> Interval:
    """A figure over all rows, with the interval that resampling its questions gives.

    Args:
        statistic: Figure of a list of rows; `Undefined` with the reason where it has none.
        groups: The rows of each question. The order of questions does not matter: they are
            drawn in the order of what their rows hold, so rows must show it in their `repr`.
            Questions without rows are left out.
        n: Resamples.
        seed: The same seed gives the same interval.
        level: Coverage, between 0 and 1.

    Returns:
        No ends where there is one question only, where the figure is undefined, or where it is
        in most resamples; `reason` says so.

    Raises:
        ValueError: the statistic is not finite, or `n` or `level` is out of range.
    """
    kept = _ordered([(group,) for group in groups if group])

    def figure(drawn: Sequence[Sequence[Sequence[Item]]]) -> float | Undefined:
        return statistic([row for (group,) in drawn for row in group])

    return _interval(figure, kept, n=n, seed=seed, level=level)


def paired_difference(
    statistic: Callable[[Sequence[Item]], float | Undefined],
    groups_a: Groups[Item],
    groups_b: Groups[Item],
    *,
    n: int = RESAMPLES,
    seed: int = 0,
    level: float = LEVEL,
) -> Interval:
    """A figure of one side less that of the other, the same questions drawn for both.

    Args:
        statistic: As `bootstrap` takes it.
        groups_a: The rows of each question on the first side.
        groups_b: Those of the same questions, in the same order, on the other.
        n: Resamples.
        seed: The same seed gives the same interval.
        level: Coverage.

    Raises:
        ValueError: the sides have not the same number of questions, or as `bootstrap`.
    """
    if len(groups_a) != len(groups_b):
        raise ValueError(f"{len(groups_a)} questions on one side, {len(groups_b)} on the other")
    pairs = zip(groups_a, groups_b, strict=True)
    kept = _ordered([pair for pair in pairs if pair[0] or pair[1]])

    def figure(drawn: Sequence[Sequence[Sequence[Item]]]) -> float | Undefined:
        sides = []
        for side in (0, 1):
            value = statistic(list(chain.from_iterable(pair[side] for pair in drawn)))
            if isinstance(value, Undefined):
                return value
            sides.append(value)
        return sides[0] - sides[1]

    return _interval(figure, kept, n=n, seed=seed, level=level)


def _interval(
    figure: Callable[[Sequence[Sequence[Sequence[Item]]]], float | Undefined],
    groups: Sequence[Sequence[Sequence[Item]]],
    *,
    n: int,
    seed: int,
    level: float,
) -> Interval:
    if n < 1 or not 0 < level < 1:
        raise ValueError(f"{n} resamples at level {level}")
    rows = sum(len(side) for group in groups for side in group)
    value = figure(groups)
    found = Interval(value=None, n=rows, groups=len(groups), level=level)
    if isinstance(value, Undefined):
        return found.model_copy(update={"reason": str(value)})
    found = found.model_copy(update={"value": _finite(value)})
    if len(groups) < 2:
        return found.model_copy(update={"reason": "one question cannot be resampled"})
    values = _resampled(figure, groups, n, seed)
    if 2 * len(values) < n:
        reason = f"undefined in {n - len(values)} of {n} resamples"
        return found.model_copy(update={"reason": reason})
    import numpy

    low, high = numpy.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    ends = {"low": float(low), "high": float(high), "resamples": len(values)}
    return found.model_copy(update=ends)


def _resampled(
    figure: Callable[[Sequence[Sequence[Sequence[Item]]]], float | Undefined],
    groups: Sequence[Sequence[Sequence[Item]]],
    n: int,
    seed: int,
) -> list[float]:
    """The figure of each resample in which it is defined."""
    import numpy

    generator = numpy.random.default_rng(seed)
    values = []
    for _ in range(n):
        drawn = generator.integers(len(groups), size=len(groups)).tolist()
        value = figure([groups[place] for place in drawn])
        if not isinstance(value, Undefined):
            values.append(_finite(value))
    return values


def _ordered(groups: list[Sequence[Sequence[Item]]]) -> list[Sequence[Sequence[Item]]]:
    """Groups by content, so that the order of a file does not shift the draws."""
    return sorted(groups, key=lambda group: [sorted(map(repr, side)) for side in group])


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise ValueError(f"a statistic gave {value}; where it has no value it must say why")
    return float(value)
