"""Figures a run must reach, as the user sets them: `kappa=0.6`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from offline_judge.domain.scores import Interval, Score
from offline_judge.errors import UsageError

SCORED = "scored"
"""The share of samples that have a verdict, beside the figures of agreement."""

NAMES = ("accuracy", "kappa", "macro_f1", "auroc", "sensitivity", "specificity", SCORED)
"""Figures that can be asked for: those of which more is better."""


@dataclass(frozen=True)
class Gate:
    """A figure, and the least it must be."""

    name: str
    least: float


@dataclass(frozen=True)
class Shortfall:
    """A gate that was not passed, and why."""

    gate: Gate
    value: float | None
    reason: str

    def __str__(self) -> str:
        found = self.reason if self.value is None else f"it is {self.value:.3f}"
        return f"{self.gate.name} is not at least {self.gate.least:g}: {found}"


def read_gates(texts: Sequence[str]) -> tuple[Gate, ...]:
    """Read `metric=value` pairs.

    Raises:
        UsageError: not a pair, no such figure, one given twice, or a value no figure can reach.
    """
    gates: dict[str, Gate] = {}
    for text in texts:
        where = f"--fail-under {text}"
        name, equals, number = text.partition("=")
        name = name.strip().lower().replace("-", "_")
        if not equals:
            raise UsageError("Not a pair", where=where, remedy="--fail-under metric=value")
        if name not in NAMES:
            close = get_close_matches(name, NAMES, n=1)
            hint = f"Did you mean `{close[0]}`?" if close else f"Figures: {', '.join(NAMES)}."
            raise UsageError(f"There is no figure `{name}`", where=where, remedy=hint)
        if name in gates:
            raise UsageError(f"`{name}` is given twice", where=where)
        gates[name] = Gate(name, _number(number, where))
    return tuple(gates.values())


def shortfalls(
    gates: Sequence[Gate], score: Score | None, scored: float | None, reason: str = ""
) -> tuple[Shortfall, ...]:
    """Gates that are not passed. A figure that is undefined passes none.

    Args:
        gates: What is asked for.
        score: Agreement with people; None where there is none to tell.
        scored: Share of samples with a verdict, None without samples.
        reason: Why there is no agreement to tell.
    """
    found = []
    for gate in gates:
        if gate.name == SCORED:
            known = Interval(value=scored, reason="" if scored is not None else "no samples")
        else:
            known = _figure(score, gate.name, reason)
        if known.value is None or known.value < gate.least:
            found.append(Shortfall(gate, known.value, known.reason or "undefined"))
    return tuple(found)


def share_scored(outcomes: Mapping[str, int], planned: int) -> float | None:
    """Share of a run's planned samples that have a verdict."""
    return outcomes.get(SCORED, 0) / planned if planned else None


def _figure(score: Score | None, name: str, reason: str) -> Interval:
    if score is None:
        return Interval(value=None, reason=reason)
    found: Interval = getattr(score.chosen, name)
    return found


def _number(text: str, where: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise UsageError("Not a number", where=where, remedy="--fail-under kappa=0.6") from None
    if not math.isfinite(value) or value > 1:
        raise UsageError("No figure is above 1", where=where, remedy="Write 60 % as 0.6.")
    return value
