"""How the verdict follows from readings of the response against several passages.

The paper has one judgment over the whole memory, in which evidence outranks the judge's own
knowledge; it is silent on how a small judge that loses itself in several passages shall do that.
Here each passage is read by itself, and so is the judge's own knowledge. The verdict is the mixture
P(correct) = sum_i w_i P(correct | i), where w is the softmax of the log-odds that i says what the
answer is, over a temperature; own knowledge has log-odds 0, so it counts where no passage is more
likely than not to say it, and a passage that is silent counts for less than nothing known. Our
choice, measured in docs/experiments.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from offline_judge.methods.sage.memory import Reflection
from offline_judge.methods.verdict import CORRECT

TEMPERATURE = 0.25
"""Of the softmax over log-odds: well below 1, since those of a small judge are close together, and
many passages beside the point would outweigh the one that says the answer."""

NEGLIGIBLE = 0.1
"""What has less weight than this is not read against the response."""

OWN_KNOWLEDGE = 0.0
"""Log-odds at which the judge's own knowledge stands beside the passages."""


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
