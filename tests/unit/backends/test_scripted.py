"""The scripted backend's rules, defaults and faults; its promises are in the contract tests."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offline_judge.backends.script import (
    Fault,
    LabelRule,
    Rule,
    ScriptOptions,
    default_json,
    pieces,
)
from offline_judge.backends.scripted import ScriptedBackend
from offline_judge.domain.message import (
    Constraint,
    FinishReason,
    Generation,
    Label,
    Message,
    Sampling,
)
from offline_judge.errors import BackendCrashedError, UsageError

YES_NO = (Label(name="true", text="Yes"), Label(name="false", text="No"))
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "note": {"type": "string", "maxLength": 20},
        "cites": {"type": "array", "items": {"type": "string", "maxLength": 5}, "maxItems": 2},
        "grade": {"type": "integer", "enum": [1, 2]},
        "sure": {"type": "boolean"},
    },
    "required": ["note"],
    "additionalProperties": False,
}


async def _say(
    backend: ScriptedBackend, text: str, constraint: Constraint | None = None
) -> Generation:
    prompt = await backend.prepare([Message(role="user", content=text)])
    items = [x async for x in backend.generate(prompt, Sampling(max_tokens=99), constraint)]
    assert isinstance(items[-1], Generation)
    return items[-1]


async def test_a_rule_answers_each_conversation_in_turn() -> None:
    rule = Rule(match="capital of (France|Spain)", answers=("first", "second"))
    backend = ScriptedBackend(ScriptOptions(rules=(rule,)))
    france = [(await _say(backend, "the capital of France?")).text for _ in range(3)]
    assert france == ["first", "second", "second"]
    assert (await _say(backend, "the capital of Spain?")).text == "first"
    assert (await _say(backend, "something else")).text not in ("first", "second")


async def test_only_the_last_user_turn_is_matched() -> None:
    backend = ScriptedBackend(ScriptOptions(rules=(Rule(match="early", answers=("hit",)),)))
    turns = [
        Message(role="user", content="early"),
        Message(role="assistant", content="x"),
        Message(role="user", content="late"),
    ]
    prompt = await backend.prepare(turns)
    items = [x async for x in backend.generate(prompt, Sampling(max_tokens=50))]
    assert isinstance(items[-1], Generation)
    assert items[-1].text != "hit"


async def test_label_rules_give_masses_and_leave_the_rest_outside() -> None:
    rule = LabelRule(match="sure", masses={"true": 0.7})
    backend = ScriptedBackend(ScriptOptions(label_rules=(rule,)))
    prompt = await backend.prepare([Message(role="user", content="sure?")])
    labels = await backend.label_probabilities(prompt, YES_NO)
    assert labels.masses == {"true": 0.7, "false": 0.0}
    assert labels.outside == pytest.approx(0.3)


async def test_a_callable_comes_before_the_rules() -> None:
    backend = ScriptedBackend(
        ScriptOptions(rules=(Rule(match="", answers=("rule",)),)),
        respond=lambda prompt, _: "called" if "special" in prompt.text else None,
        read_labels=lambda _, labels: {label.name: 0.5 for label in labels},
    )
    assert (await _say(backend, "special")).text == "called"
    assert (await _say(backend, "plain")).text == "rule"
    prompt = await backend.prepare([Message(role="user", content="x")])
    assert (await backend.label_probabilities(prompt, YES_NO)).outside == 0


async def test_a_crash_empties_the_caches_and_passes() -> None:
    faults = (Fault(kind="crash", call=1),)
    backend, phases = ScriptedBackend(ScriptOptions(faults=faults)), list[str]()
    await backend.start(lambda phase, detail="": phases.append(phase))
    await _say(backend, "one two three")
    with pytest.raises(BackendCrashedError, match="call 1"):
        await _say(backend, "one two three")
    again = await _say(backend, "one two three")
    assert again.usage.cached_tokens == 0
    assert (backend.restarts, phases[-1]) == (1, "restart")


async def test_a_fault_by_pattern_may_repeat_for_ever() -> None:
    faults = (Fault(kind="crash", match="poison", times=0),)
    backend = ScriptedBackend(ScriptOptions(faults=faults))
    for _ in range(3):
        with pytest.raises(BackendCrashedError):
            await _say(backend, "poison")
    assert (await _say(backend, "water")).text


async def test_a_hang_ends_with_its_cancel_and_frees_the_slot() -> None:
    backend = ScriptedBackend(ScriptOptions(slots=1, faults=(Fault(kind="hang", call=0),)))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await _say(backend, "x")
    async with asyncio.timeout(1):
        assert (await _say(backend, "x")).text


async def test_a_truncated_answer_says_so() -> None:
    rules = (Rule(match="", answers=("one two three four",)),)
    faults = (Fault(kind="truncated", call=0),)
    cut = await _say(ScriptedBackend(ScriptOptions(rules=rules, faults=faults)), "x")
    assert cut.finish_reason is FinishReason.LENGTH
    assert "one two three four".startswith(cut.text)
    assert len(cut.text) < len("one two three four")


async def test_an_unconstrained_answer_is_no_json() -> None:
    backend = ScriptedBackend(ScriptOptions(faults=(Fault(kind="unconstrained", call=0),)))
    constraint = Constraint(json_schema=SCHEMA)
    text = (await _say(backend, "x", constraint)).text
    with pytest.raises(ValueError, match="Expecting value"):
        json.loads(text)
    assert json.loads((await _say(backend, "x", constraint)).text)


@given(st.text(max_size=20))
def test_default_json_fits_its_schema(key: str) -> None:
    found = json.loads(default_json(SCHEMA, key))
    assert set(found) == set(SCHEMA["properties"])
    assert len(found["note"]) <= 20
    assert len(found["cites"]) <= 2
    assert all(len(cite) <= 5 for cite in found["cites"])
    assert found["grade"] in (1, 2)
    assert isinstance(found["sure"], bool)


@given(st.text())
def test_tokens_lose_nothing(text: str) -> None:
    assert "".join(pieces(text)) == text


def test_a_script_is_read_from_its_file(tmp_path: Path) -> None:
    path = tmp_path / "script.json"
    script = {
        "slots": 2,
        "rules": [{"match": "a", "answers": ["b"]}],
        "label_rules": [{"masses": {"true": 1}}],
        "faults": [{"kind": "crash", "call": 3}],
    }
    path.write_text(json.dumps(script))
    options = ScriptOptions.from_file(path)
    assert options.rules == (Rule(match="a", answers=("b",)),)
    assert options.faults == (Fault(kind="crash", call=3),)


@pytest.mark.parametrize(
    "text", ["", "{", '{"rules":[{"match":"(","answers":["b"]}]}', '{"unknown":1}']
)
def test_a_file_that_is_no_script_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "script.json"
    path.write_text(text)
    with pytest.raises(UsageError, match="No usable script") as caught:
        ScriptOptions.from_file(path)
    assert caught.value.where == str(path)
