"""Which passages the verdict is shown: those the judge's own notes lean on.

The paper is silent here; this is our choice. A small judge reads one right passage better than
three or than its own summaries, and reading every passage twice would double the cost of a
sample. So each round's passages are ranked by how much of the round's summary they account for,
and the rounds by how clearly the reflection took a side.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise

from offline_judge.methods.sage.memory import Evidence, Memory, Round

_WORD = re.compile(r"\w+")


def choose_evidence(memory: Memory, limit: int) -> tuple[Evidence, ...]:
    """The `limit` passages that the notes lean on most, in the order of their ids."""
    ranked: list[tuple[float, int, Evidence]] = []
    for round_ in memory.rounds:
        weights = _rarity(round_)
        for item in round_.evidence:
            share = _accounted(round_.summary, item.shown, weights)
            ranked.append((share * (1 + round_.conclusiveness()), -len(ranked), item))
    ranked.sort(key=lambda entry: entry[:2], reverse=True)
    chosen = [item for _, _, item in ranked[:limit]]
    return tuple(sorted(chosen, key=lambda item: int(item.id[1:])))


def _terms(text: str) -> list[str]:
    words: list[str] = _WORD.findall(text.casefold())
    return words + [f"{first} {second}" for first, second in pairwise(words)]


def _rarity(round_: Round) -> dict[str, float]:
    """Weight of a term: high where few of the round's passages have it."""
    counts = Counter(term for item in round_.evidence for term in set(_terms(item.shown)))
    return {term: 1.0 / count for term, count in counts.items()}


def _accounted(summary: str, shown: str, weights: dict[str, float]) -> float:
    """Share of the summary's weighted terms that stand in a passage, in [0, 1]."""
    terms = set(_terms(summary))
    total = sum(weights.get(term, 1.0) for term in terms)
    if not total:
        return 0.0
    here = set(_terms(shown))
    return sum(weights.get(term, 1.0) for term in terms & here) / total
