"""Preflight: what does not fit is named, the tokenizer is spared, an estimate is never invented."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from offline_judge.backends.script import Fault, ScriptOptions
from offline_judge.backends.scripted import ScriptedBackend
from offline_judge.domain.judgment import Judgment
from offline_judge.domain.message import Label, Message, Prompt
from offline_judge.domain.sample import Sample
from offline_judge.protocols import MethodContext, Values
from offline_judge.runner.preflight import COUNTING_BUDGET_S, Rates, Survey, Surveyor, measure_rates

LABELS = (Label(name="true", text="Yes"), Label(name="false", text="No"))


@dataclass(frozen=True)
class FakeRendered:
    messages: tuple[Message, ...]


def _render(template: str, values: Values) -> FakeRendered:
    user = Message(role="user", content=str(values["text"]))
    return FakeRendered((Message(role="system", content="Judge."), user))


class OnePrompt:
    name: ClassVar[str] = "one"
    searches: ClassVar[bool] = False
    stages = ("verdict",)

    @property
    def options(self) -> dict[str, Any]:
        return {}

    def largest_prompts(self, sample: Sample) -> tuple[tuple[str, Values, int], ...]:
        return (("verdict", {"text": sample.response}, 20),)

    async def judge(self, sample: Sample, context: MethodContext) -> Judgment:
        raise NotImplementedError


class CountingBackend(ScriptedBackend):
    prepared = 0

    async def prepare(
        self, messages: Sequence[Message], *, thinking: bool = False, begun: str = ""
    ) -> Prompt:
        self.prepared += 1
        return await super().prepare(messages, thinking=thinking, begun=begun)


def _backend(window: int = 300, **kwargs: Any) -> CountingBackend:
    return CountingBackend(ScriptOptions(window=window, slots=1, **kwargs))


def _sample(name: str, response: str) -> Sample:
    return Sample(id=name, question="q", response=response)


async def test_samples_whose_prompts_cannot_fit_are_named() -> None:
    samples = [_sample("fits", "word " * 40), _sample("long", "word " * 400)]
    survey = await Surveyor(OnePrompt(), _render, _backend()).survey(samples)
    assert survey.too_long == ("long",)
    assert survey.guessed == 0


async def test_the_output_counts_against_the_window() -> None:
    backend = _backend(window=10_000)
    prompt = await backend.prepare(_render("verdict", {"text": "word " * 400}).messages)
    for room, too_long in ((19, ("s",)), (20, ())):
        small = _backend(window=prompt.tokens + room)
        survey = await Surveyor(OnePrompt(), _render, small).survey([_sample("s", "word " * 400)])
        assert survey.too_long == too_long


async def test_prompts_that_surely_fit_are_not_sent_to_the_tokenizer() -> None:
    backend = _backend()
    await Surveyor(OnePrompt(), _render, backend).survey([_sample("a", "short")] * 50)
    assert backend.prepared == 0


async def test_digits_are_counted_since_a_token_may_hold_only_one() -> None:
    backend = _backend(window=200)
    await Surveyor(OnePrompt(), _render, backend).survey([_sample("a", "7" * 190)])
    assert backend.prepared == 1


async def test_after_its_time_the_survey_goes_by_length_and_says_so() -> None:
    now = iter([0.0, 0.0, COUNTING_BUDGET_S + 1, COUNTING_BUDGET_S + 2])
    backend = _backend()
    samples = [_sample(name, "word " * 400) for name in "abc"]
    surveyor = Surveyor(OnePrompt(), _render, backend, clock=lambda: next(now))
    survey = await surveyor.survey(samples)
    assert backend.prepared == 1
    assert survey.guessed == 2
    assert survey.too_long == ("a", "b", "c")


async def test_rates_come_from_the_engines_own_timings() -> None:
    backend = _backend(latency_s=0.002, read_latency_s=0.001)
    head = (Message(role="system", content="Judge each response."),)
    rates = await measure_rates(backend, {"verdict": head})
    assert rates is not None
    assert rates.read == pytest.approx(1000, rel=0.01)
    assert 400 < rates.write <= 500


async def test_the_measurement_warms_the_slot_that_needs_the_head() -> None:
    backend = _backend()
    messages = _render("verdict", {"text": "anything"}).messages
    await measure_rates(backend, {"verdict": messages[:1]})
    prompt = await backend.prepare(messages)
    labels = await backend.label_probabilities(prompt, LABELS, affinity="0/verdict")
    assert labels.usage.cached_tokens > 0


@pytest.mark.parametrize(
    "backend",
    [
        pytest.param(_backend(), id="no timings"),
        pytest.param(_backend(faults=(Fault(kind="crash", call=0),)), id="crash"),
        pytest.param(_backend(window=5), id="no room"),
    ],
)
async def test_unknown_rates_are_none(backend: CountingBackend) -> None:
    head = (Message(role="system", content="Judge each response well."),)
    assert await measure_rates(backend, {"verdict": head}) is None


def test_without_rates_there_is_no_estimate() -> None:
    assert Survey((), 1000, 100).seconds(None, 1) is None


def test_an_estimate_adds_reading_and_writing() -> None:
    assert Survey((), 1000, 100).seconds(Rates(read=100, write=10), 1) == 20
