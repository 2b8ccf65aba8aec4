"""The mixture of readings that a verdict follows from."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offline_judge.domain.message import Labels, Usage
from offline_judge.methods.sage.choose import mix, weights
from offline_judge.methods.sage.memory import Evidence, Reflection
from offline_judge.protocols import Reading, Turn

LOG_ODDS = st.floats(-14, 14)
SHARES = st.floats(0, 1)


def reflection(relevance: float, share: float, outside: float = 0.0) -> Reflection:
    inside = 1 - outside
    masses = {"true": share * inside, "false": (1 - share) * inside}
    labels = Labels(masses=masses, outside=outside, usage=Usage(prompt_tokens=1))
    return Reflection(Evidence(f"E{relevance}", "p", ""), relevance, Reading(labels, Turn((), "")))


@given(st.lists(LOG_ODDS, min_size=1))
def test_weights_sum_to_one_and_follow_the_order_of_relevance(relevance: list[float]) -> None:
    found = weights(relevance)
    assert math.isclose(sum(found), 1)
    assert sorted(found) == [found[i] for i in sorted(range(len(found)), key=relevance.__getitem__)]


@given(st.lists(st.tuples(LOG_ODDS, SHARES), min_size=1))
def test_a_mixture_lies_between_its_readings(given_: list[tuple[float, float]]) -> None:
    found = mix([reflection(relevance, share) for relevance, share in given_])
    shares = [share for _, share in given_]
    assert min(shares) - 1e-9 <= found.probability <= max(shares) + 1e-9


def test_a_passage_that_does_not_say_the_answer_hardly_counts() -> None:
    found = mix([reflection(-2, 0.1), reflection(3, 0.9)])
    assert found.probability == pytest.approx(0.9, abs=0.001)
    assert found.leading.relevance == 3


def test_two_passages_that_say_it_count_alike() -> None:
    found = mix([reflection(1, 0.2, 0.1), reflection(1, 0.8, 0.3)])
    assert found.probability == pytest.approx(0.5)
    assert found.outside == pytest.approx(0.2)


def test_no_passages_have_no_weights() -> None:
    assert weights([]) == []
