"""How the verdict follows from readings of the response against several passages.

The paper has one judgment over the whole memory; it is silent on how a small judge that loses
itself in several passages shall make it. Here each passage is read by itself. Those that are about
as likely to say what the answer is as the most likely one have a say, and the strongest support
among them is the verdict: a response is right when one of the passages that speak to the question
says so, and a passage that is silent contradicts nobody. Our choice, measured in
docs/experiments.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from offline_judge.methods.sage.memory import Reflection
from offline_judge.methods.verdict import CORRECT

ODDS_RATIO = 2.0
"""A passage has a say if its odds of saying the answer are at least half of the best passage's."""


def has_a_say(relevance: float, best: float) -> bool:
    """Whether a passage counts beside the best one; both are log-odds of saying the answer."""
    return relevance >= best - math.log(ODDS_RATIO)


def decisive(reflections: Sequence[Reflection]) -> Reflection:
    """The reading that the verdict is: of at least one, the strongest support that has a say."""
    best = max(one.relevance for one in reflections)
    heard = (one for one in reflections if has_a_say(one.relevance, best))
    # Of equals `max` takes the first, which an earlier round or a higher rank found.
    return max(heard, key=lambda one: one.reading.labels.share(CORRECT.name))
