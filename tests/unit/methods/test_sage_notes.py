"""What becomes of a sample whose notes for the next query cannot be had."""

from __future__ import annotations

import pytest
from fake_judge import FakeJudge
from sage_parts import Script, judged, masses

from offline_judge.domain.events import RoundFinished
from offline_judge.domain.judgment import UnscoredReason
from offline_judge.errors import UnscoredError
from offline_judge.protocols import Values


@pytest.mark.parametrize("note", ["relevance.summary", "reflection.missing"])
@pytest.mark.parametrize("reason", ["malformed", "empty", "truncated"])
async def test_a_note_that_cannot_be_had_leaves_the_sample_scored(note: str, reason: str) -> None:
    def script(template: str, values: Values) -> str:
        if template == note:
            raise UnscoredError(UnscoredReason(reason), "of no use")
        return Script()(template, values)

    judgment, trace = await judged(FakeJudge(script, masses), rounds=2)
    assert judgment.verdict
    first = next(event for event in trace.events if isinstance(event, RoundFinished))
    lost = first.summary if note == "relevance.summary" else first.missing
    assert lost == ""
