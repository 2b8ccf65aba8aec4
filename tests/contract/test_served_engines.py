"""Servers that run already: what they do is believed once seen, and their faults are noticed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from fake_servers import MODEL, LmStudio, Ollama, OpenAi, Product, serving
from fake_vllm import Vllm

from offline_judge.backends.chat import ChatBackend
from offline_judge.backends.lmstudio import LmStudioBackend
from offline_judge.backends.ollama import OllamaBackend
from offline_judge.backends.openai import OpenAiBackend
from offline_judge.backends.options import EngineOptions
from offline_judge.backends.probe import answered
from offline_judge.backends.probing import probed
from offline_judge.backends.running import RunningServer
from offline_judge.backends.vllm import VllmBackend
from offline_judge.domain.message import Capabilities, Constraint, Label, Message, Sampling
from offline_judge.errors import (
    BackendCrashedError,
    BackendError,
    BackendResponseError,
    BackendStartError,
    ContextOverflowError,
)
from offline_judge.prompting.thinking import split_thinking
from offline_judge.protocols import Backend
from offline_judge.runner.engine import Demands

YES_NO = (Label(name="true", text="Yes"), Label(name="false", text="No"))
CHATS: dict[type[Product], type[ChatBackend]] = {
    OpenAi: OpenAiBackend,
    LmStudio: LmStudioBackend,
    Ollama: OllamaBackend,
}
SCHEMA = {"type": "string", "enum": ["for", "against"]}


def options(url: str, **more: Any) -> EngineOptions:
    return EngineOptions(
        **{
            "model_name": MODEL,
            "served_as": MODEL,
            "base_url": url,
            "window": 512,
            "slots": 2,
            **more,
        }
    )


@asynccontextmanager
async def connected(product: Product, **more: Any) -> AsyncIterator[Any]:
    """The product's backend, started."""
    asked = options(product.url, **more)
    backend: Backend
    if isinstance(product, Vllm):
        backend = VllmBackend(asked, RunningServer(asked, ("/v1/models",), "vLLM", back_off_s=0.01))
    else:
        backend = CHATS[type(product)](asked, wait_s=0.01)
    await backend.start(lambda phase, detail="": None)
    try:
        yield backend
    finally:
        await backend.close()


async def prompt_of(backend: Backend, text: str, **how: Any) -> Any:
    return await backend.prepare([Message(role="user", content=text)], **how)


@pytest.mark.parametrize("kind", [OpenAi, LmStudio, Ollama, Vllm])
async def test_a_whole_server_is_seen_to_do_what_it_does(kind: type[Product]) -> None:
    with serving(kind()) as product:
        async with connected(product) as backend:
            can = backend.capabilities
            assert can.window == 512
            assert can.constraints == ("json_schema",)
            assert can.seed
            assert can.label_probabilities == (kind is not LmStudio)
            report = await probed(backend, lambda phase, detail="": None)
            assert report.bad_constraint_refused
            assert not report.mixed_up
            assert report.needle == "unclear"  # the script knows no passwords


@pytest.mark.parametrize("kind", [OpenAi, Ollama, Vllm])
async def test_label_masses_are_those_of_the_alternatives(kind: type[Product]) -> None:
    with serving(kind()) as product:
        async with connected(product) as backend:
            labels = await backend.label_probabilities(await prompt_of(backend, "So?"), YES_NO)
            assert labels.inside == pytest.approx(0.95)
            assert labels.outside == pytest.approx(0.05)
            assert labels.unseen == pytest.approx(0.05)


@pytest.mark.parametrize(
    ("kind", "fault"),
    [(OpenAi, "no logprobs"), (OpenAi, "after sampling"), (Ollama, "old release")],
)
async def test_alternatives_that_are_missing_or_sampled_are_no_capability(
    kind: type[Product], fault: str
) -> None:
    with serving(kind(faults=[fault])) as product:
        async with connected(product) as backend:
            assert not backend.capabilities.label_probabilities


@pytest.mark.parametrize("kind", [OpenAi, LmStudio, Ollama])
async def test_a_schema_that_is_ignored_is_no_capability(kind: type[Product]) -> None:
    with serving(kind(faults=["schema ignored"])) as product:
        async with connected(product) as backend:
            assert backend.capabilities.constraints == ()
            assert not (await probed(backend, lambda phase, detail="": None)).bad_constraint_refused


@pytest.mark.parametrize("kind", [OpenAi, LmStudio, Ollama, Vllm])
async def test_a_seed_that_is_ignored_is_seen(kind: type[Product]) -> None:
    with serving(kind(faults=["seed ignored"])) as product:
        async with connected(product) as backend:
            assert not backend.capabilities.seed


async def test_ollama_is_always_asked_with_the_same_window() -> None:
    with serving(Ollama()) as product:
        async with connected(product) as backend:
            await answered(backend, await prompt_of(backend, "So?"), Sampling(max_tokens=4))
            await backend.label_probabilities(await prompt_of(backend, "So?"), YES_NO)
            asked = product.sent("/api/chat")
            assert len(asked) > 4
            assert {body["options"]["num_ctx"] for body in asked} == {512}
            assert all(body["truncate"] is False for body in asked)


async def test_a_front_that_ollama_dropped_is_an_overflow_and_no_answer() -> None:
    # The server's own limit is far below the window that it was asked for and says it has.
    with serving(Ollama(window=256, faults=["old release"])) as product:
        async with connected(product, window=2048) as backend:
            text = "The rubric says so, and the evidence stands behind it. " * 60
            with pytest.raises(ContextOverflowError, match=r"read 256 tokens .*it cut it"):
                await answered(backend, await prompt_of(backend, text), Sampling(max_tokens=4))


async def test_a_prompt_that_a_server_refuses_for_its_length_is_an_overflow() -> None:
    with serving(Ollama(window=256)) as product:
        async with connected(product, window=2048) as backend:
            prompt = await prompt_of(backend, "The evidence stands behind it. " * 60)
            with pytest.raises(ContextOverflowError, match="exceeds the context length"):
                await answered(backend, prompt, Sampling(max_tokens=4))
    with serving(OpenAi(window=256)) as product:
        async with connected(product, window=2048) as backend:
            prompt = await prompt_of(backend, "The evidence stands behind it. " * 60)
            with pytest.raises(ContextOverflowError, match="maximum context length"):
                await answered(backend, prompt, Sampling(max_tokens=4))


async def test_a_prompt_that_vllm_cut_is_no_answer() -> None:
    with serving(Vllm(faults=["cut"])) as product:
        asked = options(product.url)
        server = RunningServer(asked, ("/v1/models",), "vLLM")
        backend = VllmBackend(asked, server)
        with pytest.raises(BackendResponseError, match="cut the prompt"):
            await backend.start(lambda phase, detail="": None)


async def test_a_vllm_that_gives_few_alternatives_is_asked_for_fewer() -> None:
    with serving(Vllm(faults=["few logprobs"])) as product:
        async with connected(product) as backend:
            assert backend.capabilities.label_probabilities
            asked = [b["logprobs"] for b in product.sent("/v1/completions") if b.get("logprobs")]
            assert asked[0] == 100
            assert set(asked[1:]) == {20}


async def test_an_answer_that_lm_studio_puts_into_the_thoughts_is_never_read() -> None:
    with serving(LmStudio(thinks=True, faults=["schema in reasoning"])) as product:
        async with connected(product, thinks=True) as backend:
            assert "on-constrained" not in backend.capabilities.thinking_modes
            assert "off-constrained" in backend.capabilities.thinking_modes
            prompt = await prompt_of(backend, "For or against?", thinking=True)
            found = await answered(
                backend, prompt, Sampling(max_tokens=40), Constraint(json_schema=SCHEMA)
            )
            thought, final = split_thinking(found.text)
            assert '"' in thought
            assert final == ""


@pytest.mark.parametrize("kind", [OpenAi, Ollama, Vllm])
async def test_thinking_is_seen_and_split_off(kind: type[Product]) -> None:
    with serving(kind(thinks=True)) as product:
        async with connected(product, thinks=True) as backend:
            modes = backend.capabilities.thinking_modes
            assert set(modes) == {"off", "off-constrained", "on", "on-constrained"}


async def test_a_busy_server_is_asked_again() -> None:
    with serving(OpenAi()) as product:
        async with connected(product) as backend:
            product.busy = 3
            assert (
                await answered(backend, await prompt_of(backend, "So?"), Sampling(max_tokens=4))
            ).text
            assert product.busy == 0


async def test_a_server_that_stays_busy_is_an_error() -> None:
    with serving(OpenAi()) as product:
        async with connected(product) as backend:
            product.busy = 1000
            with pytest.raises(BackendResponseError, match="503"):
                await answered(backend, await prompt_of(backend, "So?"), Sampling(max_tokens=4))


async def test_nothing_there_is_told_with_the_address() -> None:
    with serving(OpenAi()) as product:
        url = product.url
    backend = OpenAiBackend(options(url))
    with pytest.raises(BackendStartError, match=rf"Nothing answers at {url}"):
        await backend.start(lambda phase, detail="": None)


@pytest.mark.parametrize("kind", [OpenAi, LmStudio, Ollama, Vllm])
async def test_a_model_that_is_not_there_is_told_with_those_that_are(kind: type[Product]) -> None:
    with serving(kind()) as product, pytest.raises(BackendStartError, match="no model `other`"):
        async with connected(product, served_as="other"):
            pass


async def test_a_server_that_dies_and_comes_back_is_waited_for() -> None:
    with serving(Vllm()) as product:
        port = product.server_port
        asked = options(product.url)
        server = RunningServer(asked, ("/v1/models",), "vLLM", back_off_s=0.05)
        backend = VllmBackend(asked, server)
        phases: list[str] = []
        await backend.start(lambda phase, detail="": phases.append(phase))
    prompt_text = "So?"
    with pytest.raises(BackendCrashedError, match="broke off"):
        await prompt_of(backend, prompt_text)
    waiting = asyncio.create_task(prompt_of(backend, prompt_text))
    await asyncio.sleep(0.06)
    with serving(Vllm(port=port)):
        prompt = await waiting
        assert prompt.tokens > 0
        assert server.restarts == 1
        assert phases.index("waiting") < phases.index("restart")
        assert phases.count("restart") == 1
        await backend.close()


async def test_a_stream_without_a_reason_to_stop_is_no_answer() -> None:
    with serving(OpenAi()) as product:
        async with connected(product) as backend:
            whole = product.answer  # type: ignore[attr-defined]  # it is an OpenAi

            def cut(*args: Any) -> Any:
                return [event for event in whole(*args) if "finish_reason" not in str(event)]

            product.answer = cut  # type: ignore[attr-defined]  # a connection that ends early
            with pytest.raises(BackendResponseError, match="without a reason"):
                await answered(backend, await prompt_of(backend, "So?"), Sampling(max_tokens=4))


async def test_a_model_that_thinks_though_it_was_told_not_to_is_seen_and_refused() -> None:
    with serving(OpenAi(thinks=True, faults=["thinks anyway"])) as product:
        async with connected(product, thinks=True) as backend:
            assert "off" not in backend.capabilities.thinking_modes
            assert "on" in backend.capabilities.thinking_modes
            with pytest.raises(BackendError, match="thinks though it was told not to"):
                Demands().check("openai", backend.capabilities)
            Demands(thinking_tokens=64).check("openai", backend.capabilities)


def test_a_judge_that_shall_think_and_cannot_is_refused() -> None:
    can = Capabilities(
        window=512, slots=1, token_level=True, label_probabilities=True, thinking_modes=("off",)
    )
    Demands().check("e", can)
    with pytest.raises(BackendError, match="shall think"):
        Demands(thinking_tokens=64).check("e", can)


async def test_labels_are_read_without_thinking_where_one_request_does_both() -> None:
    with serving(Ollama(thinks=True)) as product:
        async with connected(product, thinks=True) as backend:
            prompt = await prompt_of(backend, "So?", thinking=True)
            labels = await backend.label_probabilities(prompt, YES_NO)
            assert labels.inside == pytest.approx(0.95)
            assert product.sent("/api/chat")[-1]["think"] is False
