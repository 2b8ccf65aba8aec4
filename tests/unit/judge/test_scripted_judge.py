"""The judge on the scripted engine, through its real chat rendering and slots."""

from pathlib import Path
from typing import Any, Literal

import pytest
from judge_fakes import Trace, make_library
from pydantic import BaseModel

from offline_judge.backends.script import Fault, LabelRule, Rule, ScriptOptions
from offline_judge.backends.scripted import ScriptedBackend
from offline_judge.domain.message import Label
from offline_judge.errors import UnscoredError
from offline_judge.judge.cache import CompletionCache
from offline_judge.judge.session import JudgeFactory
from offline_judge.prompting.answers import JsonAnswer, LineAnswer
from offline_judge.protocols import Judge, Untrusted, Values

LABELS = (Label(name="true", text="Yes"), Label(name="false", text="No"))
VALUES: Values = {"question": "Where?", "response": Untrusted("Paris", "response")}


class Stance(BaseModel):
    stance: Literal["supports", "contradicts"]


def _judge(folder: Path, **options: Any) -> tuple[ScriptedBackend, Trace, Judge]:
    backend, trace = ScriptedBackend(ScriptOptions(**options)), Trace()
    factory = JudgeFactory(backend, make_library(folder), CompletionCache(None), "ab", "demo")
    return backend, trace, factory.bind("s1", 0, trace)


async def test_a_verdict_its_reason_and_a_check_share_one_conversation(tmp_path: Path) -> None:
    _, trace, judge = _judge(tmp_path, label_rules=(LabelRule(masses={"true": 0.8, "false": 0.1}),))
    reading = await judge.read("verdict", VALUES, LABELS)
    why = await judge.ask(
        "verdict.why", {}, JsonAnswer(Stance, max_tokens=40), follows=reading.turn
    )
    check = await judge.read("verdict.why", {}, LABELS, follows=why.turn)
    assert [message.role for message in check.turn.messages] == [
        "system", "user", "assistant", "user", "assistant", "user", "assistant",
    ]  # fmt: skip
    cached = [call.usage.cached_tokens for call in trace.calls]
    assert cached[0] == 0
    assert cached[1] >= trace.calls[0].usage.prompt_tokens - 5, "the prefix is reused"
    assert cached[2] > cached[1]


async def test_a_scripted_crash_is_survived(tmp_path: Path) -> None:
    backend, trace, judge = _judge(tmp_path, faults=(Fault(kind="crash", times=1),))
    await judge.ask("query", VALUES, LineAnswer(max_chars=200, max_tokens=40))
    assert backend.calls == 2
    assert [bool(call.problem) for call in trace.calls] == [True, False]


async def test_an_engine_that_ignores_the_schema_yields_no_verdict(tmp_path: Path) -> None:
    _, trace, judge = _judge(tmp_path, faults=(Fault(kind="unconstrained", times=0),))
    with pytest.raises(UnscoredError) as caught:
        await judge.ask("query", VALUES, JsonAnswer(Stance, max_tokens=40))
    assert caught.value.reason == "malformed"
    assert len(trace.calls) == 2


async def test_a_second_answer_repairs_the_first(tmp_path: Path) -> None:
    rules = (Rule(answers=("no json", '{"stance": "supports"}')),)
    _, trace, judge = _judge(tmp_path, rules=rules)
    answer = await judge.ask("query", VALUES, JsonAnswer(Stance, max_tokens=40))
    assert answer.value.stance == "supports"
    assert trace.calls[1].template == "common/retry.correction"
