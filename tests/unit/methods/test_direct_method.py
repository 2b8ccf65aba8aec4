"""The control without search: one reading, and no evidence to cite."""

from __future__ import annotations

import json

import pytest
from fake_judge import FakeJudge, ListTrace

from offline_judge.domain.evidence import EvidenceState
from offline_judge.domain.sample import Sample
from offline_judge.methods.direct.method import Direct
from offline_judge.protocols import MethodContext, Untrusted

SAMPLE = Sample(id="s", question="Which?", response="That one")


def answer(template: str, values: object) -> str:
    return json.dumps({"rationale": "I know it.", "correct": False})


async def test_it_reads_the_verdict_and_never_searches() -> None:
    judge = FakeJudge(answer, lambda template, values: {"true": 0.2, "false": 0.6})
    context = MethodContext(judge=judge, search=None, trace=ListTrace())
    judgment = await Direct.from_options({}).judge(SAMPLE, context)
    assert not judgment.verdict
    assert judgment.probability == pytest.approx(0.25)
    assert judgment.rationale == "I know it."
    assert judgment.evidence_state is EvidenceState.NOT_SEARCHED
    assert judge.asked("verdict")[0].values["response"] == Untrusted("That one", "response")


async def test_the_rationale_can_be_left_out() -> None:
    judge = FakeJudge(answer, lambda template, values: {"true": 0.9})
    context = MethodContext(judge=judge, search=None, trace=ListTrace())
    await Direct.from_options({"rationale": False}).judge(SAMPLE, context)
    assert [call.template for call in judge.calls] == ["verdict"]
