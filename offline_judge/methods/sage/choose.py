"""Which passages the verdict is shown: those the judge's own notes lean on.

The paper is silent here; this is our choice. A small judge reads one right passage better than
three or than its own summaries, and reading every passage twice would double the cost of a
sample. So the passages are ranked by how much of the question and of their round's summary they
account for, words that few of the passages have counting for more. Later rounds count for less:
the first search asks the question itself, and what a small judge asks next often strays from it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping

from offline_judge.methods.sage.memory import Evidence, Memory

_WORD = re.compile(r"\w+")
# Shorter words are mostly of the kind that every sentence has, in whatever language.
_SHORTEST = 4
_LATER_ROUND = 0.7


def choose_evidence(memory: Memory, question: str, limit: int) -> tuple[Evidence, ...]:
    """The `limit` passages that the notes lean on most, in the order of their ids."""
    terms = {item.id: _terms(item.shown) for item in memory.evidence.values()}
    counts = Counter(term for found in terms.values() for term in found)
    rarity = {term: 1.0 / count for term, count in counts.items()}
    scores: dict[str, float] = {}
    for age, round_ in enumerate(memory.rounds):
        for item in round_.evidence:
            about = _share(_terms(question), terms[item.id], rarity)
            said = _share(_terms(round_.summary), terms[item.id], rarity)
            scores[item.id] = (about + said) * _LATER_ROUND**age
    # Python's sort is stable, so of equals the earlier found comes first.
    best = sorted(scores, key=lambda name: scores[name], reverse=True)[:limit]
    return tuple(item for name, item in memory.evidence.items() if name in best)


def _terms(text: str) -> set[str]:
    """Words that may tell one passage from another, in lower case."""
    words: list[str] = _WORD.findall(text.casefold())
    return {word for word in words if len(word) >= _SHORTEST or not word.isalpha()}


def _share(wanted: Collection[str], found: Collection[str], rarity: Mapping[str, float]) -> float:
    """Share in [0, 1] of the wanted terms' weight that is found; a term no passage has weighs 1."""
    weights = {term: rarity.get(term, 1.0) for term in wanted}
    total = sum(weights.values())
    return (
        sum(weight for term, weight in weights.items() if term in found) / total if total else 0.0
    )
