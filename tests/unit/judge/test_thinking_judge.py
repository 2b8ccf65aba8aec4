"""A judge that thinks first: within its budget, split off, never parsed, never constrained."""

from pathlib import Path
from typing import Any

import pytest
from judge_fakes import Trace, make_library

from offline_judge.backends.script import Rule, ScriptOptions
from offline_judge.backends.scripted import ScriptedBackend
from offline_judge.domain.message import Capabilities, Constraint, Label, Prompt, Sampling
from offline_judge.errors import UnscoredError
from offline_judge.judge.cache import CompletionCache
from offline_judge.judge.session import JudgeFactory
from offline_judge.prompting.answers import LineAnswer
from offline_judge.protocols import Judge, Untrusted, Values

LABELS = (Label(name="true", text="Yes"), Label(name="false", text="No"))
VALUES: Values = {"question": "Where?", "response": Untrusted("Paris", "response")}
LINE = LineAnswer(max_chars=200, max_tokens=40)


def judge_of(
    folder: Path, backend: ScriptedBackend, tokens: int, cache: CompletionCache | None = None
) -> tuple[Judge, Trace]:
    factory = JudgeFactory(
        backend,
        make_library(folder),
        cache or CompletionCache(None),
        model_sha256="ab" * 32,
        namespace="demo",
        thinking_tokens=tokens,
    )
    trace = Trace()
    return factory.bind("s1", 0, trace), trace


def thinker(**more: Any) -> ScriptedBackend:
    return ScriptedBackend(ScriptOptions(thinks=True, **more))


async def test_the_answer_is_asked_for_behind_the_closed_thought(tmp_path: Path) -> None:
    backend = thinker()
    judge, trace = judge_of(tmp_path, backend, 64)
    answer = await judge.ask("verdict", VALUES, LINE)
    thought, answered = trace.calls
    assert thought.text.startswith("<think>")
    assert thought.text.endswith("</think>")
    assert "think" not in answered.text
    assert answer.text == answered.text
    first, second = backend.prompts
    assert first.text.endswith("<think>\n")
    assert second.text.endswith("</think>\n\n")
    assert second.text.startswith(first.text)


async def test_a_reading_comes_behind_the_thought(tmp_path: Path) -> None:
    backend = thinker()
    judge, trace = judge_of(tmp_path, backend, 64)
    reading = await judge.read("verdict", VALUES, LABELS)
    assert reading.labels.inside == pytest.approx(0.95)
    assert backend.prompts[-1].text.endswith("</think>\n\n")
    assert [call.masses is None for call in trace.calls] == [True, False]


async def test_a_thought_ends_at_its_budget_and_the_answer_is_whole(tmp_path: Path) -> None:
    backend = thinker()
    judge, trace = judge_of(tmp_path, backend, 3)
    answer = await judge.ask("verdict", VALUES, LINE)
    thought = trace.calls[0]
    assert thought.usage.completion_tokens == 3
    assert "budget of 3" in thought.problem
    assert answer.text
    assert backend.prompts[-1].text.endswith("\n</think>\n\n")


async def test_a_model_that_does_not_think_is_told_of_once(tmp_path: Path) -> None:
    backend = ScriptedBackend(ScriptOptions(rules=(Rule(answers=("Plain.",)),)))
    judge, trace = judge_of(tmp_path, backend, 16)
    for at in range(2):
        assert (await judge.ask("verdict", {**VALUES, "question": f"{at}?"}, LINE)).text
    (warning,) = trace.warnings
    assert "did not" in warning


async def test_with_and_without_thinking_are_two_answers_to_the_cache(tmp_path: Path) -> None:
    cache = CompletionCache(None)
    for tokens in (0, 64, 32, 0, 64, 32):
        judge, _ = judge_of(tmp_path, backend := thinker(), tokens, cache)
        await judge.ask("verdict", VALUES, LINE)
        await judge.read("verdict", VALUES, LABELS)
    assert backend.calls == 0


async def test_without_tokens_of_its_own_one_request_does_both(tmp_path: Path) -> None:
    def respond(prompt: Prompt, sampling: Sampling) -> str:
        assert sampling.max_tokens == 40 + 64
        return "Lyon."

    backend = ScriptedBackend(ScriptOptions(thinks=True, token_level=False), respond=respond)
    judge, trace = judge_of(tmp_path, backend, 64)
    answer = await judge.ask("verdict", VALUES, LINE)
    assert answer.value == "Lyon."
    assert len(trace.calls) == 1


async def test_a_thought_that_is_cut_in_one_request_is_no_answer(tmp_path: Path) -> None:
    backend = ScriptedBackend(
        ScriptOptions(token_level=False), respond=lambda *_: "<think>Yes or no, that is"
    )
    judge, _ = judge_of(tmp_path, backend, 64)
    with pytest.raises(UnscoredError) as caught:
        await judge.ask("verdict", VALUES, LINE)
    assert caught.value.reason == "truncated"


async def test_the_window_must_hold_the_thought_too(tmp_path: Path) -> None:
    backend = thinker(window=200)
    judge, _ = judge_of(tmp_path, backend, 190)
    with pytest.raises(UnscoredError) as caught:
        await judge.ask("verdict", VALUES, LINE)
    assert caught.value.reason == "overflow"


async def test_a_constraint_that_thinking_breaks_is_not_used(tmp_path: Path) -> None:
    class Broken(ScriptedBackend):
        @property
        def capabilities(self) -> Capabilities:
            return super().capabilities.model_copy(
                update={"thinking_modes": ("off", "off-constrained", "on")}
            )

    seen: list[Constraint | None] = []

    class Watching(Broken):
        def _final(self, prompt: Prompt, sampling: Sampling, constraint: Constraint | None) -> str:
            seen.append(constraint)
            return '"Yes"'

    backend = Watching(ScriptOptions(thinks=True, label_probabilities=False))
    judge, trace = judge_of(tmp_path, backend, 64)
    reading = await judge.read("verdict", VALUES, LABELS)
    assert reading.labels.best() == "true"
    assert seen[-1] is None
    (warning,) = trace.warnings
    assert "Behind thinking" in warning
