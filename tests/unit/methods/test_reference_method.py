"""The judge with the key: accepted answers before the response, fenced, and none is no verdict."""

from __future__ import annotations

import json

import pytest
from fake_judge import FakeJudge, ListTrace

from offline_judge.domain.evidence import EvidenceState
from offline_judge.domain.judgment import UnscoredReason
from offline_judge.domain.sample import Sample
from offline_judge.errors import UnscoredError
from offline_judge.methods.reference.method import Reference
from offline_judge.prompting.fence import Fence
from offline_judge.prompting.library import TemplateLibrary
from offline_judge.protocols import MethodContext, Untrusted

SAMPLE = Sample(
    id="s", question="Which?", response="That one", reference=("Astana", " ", "Nur-Sultan")
)


def answer(template: str, values: object) -> str:
    return json.dumps({"rationale": "They are the same.", "correct": True})


async def test_it_reads_the_verdict_with_all_accepted_answers() -> None:
    judge = FakeJudge(answer, lambda template, values: {"true": 0.6, "false": 0.2})
    context = MethodContext(judge=judge, search=None, trace=ListTrace())
    judgment = await Reference.from_options({}).judge(SAMPLE, context)
    assert judgment.verdict
    assert judgment.probability == pytest.approx(0.75)
    assert judgment.rationale == "They are the same."
    assert judgment.evidence_state is EvidenceState.NOT_SEARCHED
    values = judge.asked("verdict")[0].values
    assert values["accepted"] == Untrusted("Astana or Nur-Sultan", "reference")
    assert values["response"] == Untrusted("That one", "response")


async def test_the_rationale_can_be_left_out() -> None:
    judge = FakeJudge(answer, lambda template, values: {"true": 0.9})
    context = MethodContext(judge=judge, search=None, trace=ListTrace())
    await Reference.from_options({"rationale": False}).judge(SAMPLE, context)
    assert [call.template for call in judge.calls] == ["verdict"]


@pytest.mark.parametrize("reference", [(), ("", "  ")])
async def test_without_an_accepted_answer_nothing_is_asked(reference: tuple[str, ...]) -> None:
    judge = FakeJudge(answer)
    context = MethodContext(judge=judge, search=None, trace=ListTrace())
    method = Reference.from_options({})
    sample = SAMPLE.model_copy(update={"reference": reference})
    with pytest.raises(UnscoredError) as caught:
        await method.judge(sample, context)
    assert caught.value.reason == UnscoredReason.NO_REFERENCE
    assert judge.calls == []
    assert method.largest_prompts(sample) == ()


def test_what_two_responses_to_a_question_share_stands_before_the_response() -> None:
    library = TemplateLibrary(
        {"reference": "offline_judge.methods.reference"}, None, Fence(b"s" * 32)
    )
    ((template, values, _),) = Reference.from_options({}).largest_prompts(SAMPLE)
    text = library.render(f"reference/{template}", values).messages[-1].content
    places = [text.index(part) for part in ("Which?", "Astana or Nur-Sultan", "That one")]
    assert places == sorted(places)
