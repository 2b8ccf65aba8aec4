"""Summaries of passages: which are read beside their passage, and what becomes of lost ones."""

from __future__ import annotations

import pytest
from fake_judge import FakeJudge
from sage_parts import SAMPLE, Script, judged, masses

from offline_judge.domain.events import RoundFinished
from offline_judge.domain.judgment import UnscoredReason
from offline_judge.errors import UnscoredError
from offline_judge.methods.sage.method import Sage
from offline_judge.protocols import Untrusted, Values


def rated(share: float) -> FakeJudge:
    """Every passage says what the answer is with this probability."""

    def read(template: str, values: Values) -> dict[str, float]:
        if template == "relevance":
            return {"relevant": share, "irrelevant": 1 - share}
        return masses(template, values)

    return FakeJudge(Script(), read)


async def test_the_summary_of_a_clear_passage_is_read_beside_it_as_foreign_text() -> None:
    judge = rated(0.75)
    await judged(judge, rounds=1)
    assert not judge.asked("reflection")
    asked = judge.asked("informed")
    assert [call.values["evidence"].text[:4] for call in asked] == ["[E1]", "[E2]", "[E3]"]
    assert {call.values["summary"] for call in asked} == {Untrusted("It is fact 2.", "summary")}


async def test_a_passage_that_is_not_clear_is_read_alone() -> None:
    judge = rated(0.7)
    await judged(judge, rounds=2)
    assert judge.asked("relevance.summary")
    assert judge.asked("reflection")
    assert not judge.asked("informed")


@pytest.mark.parametrize("options", [{"restate": False}, {"single_pass": True}])
async def test_without_restating_no_summary_is_read(options: dict[str, bool]) -> None:
    judge = rated(0.95)
    await judged(judge, **options)
    assert judge.asked("reflection")
    assert not judge.asked("informed")


def test_the_longest_prompt_counts_the_summary() -> None:
    def longest(**options: bool) -> set[str]:
        method = Sage.from_options(options)
        return {name for _, values, _ in method.largest_prompts(SAMPLE) for name in values}

    assert "summary" in longest()
    assert "summary" not in longest(restate=False)


@pytest.mark.parametrize("note", ["relevance.summary", "reflection.missing"])
@pytest.mark.parametrize("reason", ["malformed", "empty", "truncated"])
async def test_a_note_that_cannot_be_had_leaves_the_sample_scored(note: str, reason: str) -> None:
    def script(template: str, values: Values) -> str:
        if template == note:
            raise UnscoredError(UnscoredReason(reason), "of no use")
        return Script()(template, values)

    judge = FakeJudge(script, masses)
    judgment, trace = await judged(judge, rounds=2)
    assert judgment.verdict
    first = next(event for event in trace.events if isinstance(event, RoundFinished))
    lost = first.summary if note == "relevance.summary" else first.missing
    assert lost == ""
    assert bool(judge.asked("informed")) == (note != "relevance.summary")
