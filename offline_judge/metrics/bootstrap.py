"""Percentile bootstrap intervals that resample whole questions.

Responses to one question succeed and fail together, so resampling single rows would make an
interval too narrow. Method: the percentile bootstrap over clusters (Efron and Tibshirani, "An
Introduction to the Bootstrap", 1993, chapters 8 and 13).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import chain
from typing import NamedTuple, TypeVar

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


def bootstrap_counts(
    statistic: Callable[..., float | Undefined],
    counts: Sequence[Sequence[int]],
    *,
    n: int = RESAMPLES,
    seed: int = 0,
    level: float = LEVEL,
) -> Interval:
    """As `bootstrap`, for a figure of sums: many times as fast where there are many questions.

    Args:
        statistic: Figure of the sums of all counts, one argument each, such as `kappa_of`.
        counts: Of each question, shape (questions, counts); their sum is its number of rows.
        n: Resamples.
        seed: The same seed gives the same interval.
        level: Coverage, between 0 and 1.

    Returns:
        As `bootstrap`.

    Raises:
        ValueError: as `bootstrap`.
    """
    import numpy

    kept = sorted(tuple(count) for count in counts if any(count))
    if not kept:
        return Interval(value=None, n=0, groups=0, level=level, reason="there are no rows")
    table = numpy.array(kept, dtype=numpy.int64)

    def figure(sums: Sequence[int]) -> float | Undefined:
        return statistic(*sums)

    def draw() -> list[float]:
        generator = numpy.random.default_rng(seed)
        found = []
        for _ in range(n):
            places = generator.integers(len(table), size=len(table))
            drawn = numpy.bincount(places, minlength=len(table)) @ table
            value = figure(drawn.tolist())
            if not isinstance(value, Undefined):
                found.append(_finite(value))
        return found

    whole = figure(table.sum(axis=0).tolist())
    return _ends(whole, _Size(int(table.sum()), len(table), n, level), draw)


class _Size(NamedTuple):
    rows: int
    groups: int
    resamples: int
    level: float


def _interval(
    figure: Callable[[Sequence[Sequence[Sequence[Item]]]], float | Undefined],
    groups: Sequence[Sequence[Sequence[Item]]],
    *,
    n: int,
    seed: int,
    level: float,
) -> Interval:
    rows = sum(len(side) for group in groups for side in group)
    size = _Size(rows, len(groups), n, level)
    return _ends(figure(groups), size, lambda: _resampled(figure, groups, n, seed))


def _ends(value: float | Undefined, size: _Size, draw: Callable[[], list[float]]) -> Interval:
    """A figure, and its interval from what `draw` gives of those resamples where it is defined."""
    n, level = size.resamples, size.level
    if n < 1 or not 0 < level < 1:
        raise ValueError(f"{n} resamples at level {level}")
    found = Interval(value=None, n=size.rows, groups=size.groups, level=level)
    if isinstance(value, Undefined):
        return found.model_copy(update={"reason": str(value)})
    found = found.model_copy(update={"value": _finite(value)})
    if size.groups < 2:
        return found.model_copy(update={"reason": "one question cannot be resampled"})
    values = draw()
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
