"""Which reading of the response a verdict is."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from offline_judge.domain.message import Labels, Usage
from offline_judge.methods.sage.choose import ODDS_RATIO, decisive, has_a_say
from offline_judge.methods.sage.memory import Evidence, Reflection
from offline_judge.protocols import Reading, Turn

LOG_ODDS = st.floats(-14, 14)
SHARES = st.floats(0, 1)
READINGS = st.lists(st.tuples(LOG_ODDS, SHARES), min_size=1)


def reflection(relevance: float, share: float, name: str = "E1") -> Reflection:
    labels = Labels(
        masses={"true": share, "false": 1 - share}, outside=0, usage=Usage(prompt_tokens=1)
    )
    return Reflection(Evidence(name, "p", ""), relevance, Reading(labels, Turn((), "")))


def of(*given_: tuple[float, float]) -> Reflection:
    return decisive([reflection(*one, name=f"E{i}") for i, one in enumerate(given_, 1)])


@given(READINGS)
def test_the_decisive_passage_has_a_say(given_: list[tuple[float, float]]) -> None:
    found = of(*given_)
    assert has_a_say(found.relevance, max(relevance for relevance, _ in given_))


@given(READINGS, st.tuples(st.floats(-14, 0), SHARES))
def test_a_passage_beside_the_point_changes_nothing(
    given_: list[tuple[float, float]], other: tuple[float, float]
) -> None:
    best = max(relevance for relevance, _ in given_)
    silent = (best - math.log(ODDS_RATIO) - 1, other[1])
    assert of(*given_) == of(*given_, silent)


def test_of_passages_that_speak_to_the_question_the_strongest_support_decides() -> None:
    assert of((1.0, 0.2), (0.9, 0.8), (1.1, 0.5)).item.id == "E2"


def test_a_support_by_a_passage_that_does_not_say_the_answer_is_not_heard() -> None:
    assert of((3.0, 0.1), (-1.0, 0.99)).item.id == "E1"


def test_of_equals_the_first_decides() -> None:
    assert of((1.0, 0.5), (1.0, 0.5)).item.id == "E1"
