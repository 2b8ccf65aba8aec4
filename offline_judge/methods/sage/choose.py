"""How the verdict follows from readings of the response against several passages.

The paper has one judgment over the whole memory; it is silent on how a judge that loses itself in
several passages shall read them. Here each is read by itself, and the verdict is the mixture
P(correct) = sum_i w_i P(correct | passage i), where w is the softmax of the log-odds that passage
i says what the answer is, over a temperature. Our choice, measured in docs/experiments.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from offline_judge.methods.sage.memory import Reflection
from offline_judge.methods.verdict import CORRECT

TEMPERATURE = 0.5
"""Of the softmax over log-odds: below 1, since a small judge's log-odds are too close together."""

NEGLIGIBLE = 0.1
"""Passages with less weight than this are not read against the response."""


@dataclass(frozen=True)
class Mixture:
    """A verdict out of several readings.

    Attributes:
        probability: Of `correct` among the two labels.
        outside: Mass on neither label.
        leading: The reading with the largest weight.
    """

    probability: float
    outside: float
    leading: Reflection


def weights(relevance: Sequence[float]) -> list[float]:
    """Weights that sum to 1, from log-odds of relevance; empty for none."""
    if not relevance:
        return []
    top = max(relevance)
    raw = [math.exp((value - top) / TEMPERATURE) for value in relevance]
    return [value / sum(raw) for value in raw]


def mix(reflections: Sequence[Reflection]) -> Mixture:
    """The mixture of at least one reading; of equal weights the earliest leads."""
    shares = weights([one.relevance for one in reflections])
    labels = [one.reading.labels for one in reflections]
    leading = max(range(len(shares)), key=lambda index: shares[index])
    return Mixture(
        sum(share * one.share(CORRECT.name) for share, one in zip(shares, labels, strict=True)),
        sum(share * one.outside for share, one in zip(shares, labels, strict=True)),
        reflections[leading],
    )
