"""Several servers of one model: shared work, kept prefixes, dead ones left out and taken back."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
from fake_servers import MODEL, OpenAi, Product, serving
from fake_vllm import Vllm

from offline_judge.backends.openai import OpenAiBackend
from offline_judge.backends.options import EngineOptions
from offline_judge.backends.pool import PoolBackend
from offline_judge.backends.probe import answered
from offline_judge.backends.running import RunningServer
from offline_judge.backends.vllm import VllmBackend
from offline_judge.domain.message import Label, Message, Sampling
from offline_judge.errors import BackendStartError
from offline_judge.protocols import Backend

YES_NO = (Label(name="true", text="Yes"), Label(name="false", text="No"))


def options(product: Product, slots: int = 1) -> EngineOptions:
    return EngineOptions(
        model_name=MODEL, served_as=MODEL, base_url=product.url, window=512, slots=slots
    )


def vllm(product: Product, slots: int = 1) -> Backend:
    asked = options(product, slots)
    return VllmBackend(asked, RunningServer(asked, ("/v1/models",), "vLLM", back_off_s=0.01))


@contextmanager
def products(number: int, **more: Any) -> Iterator[list[Vllm]]:
    with ExitStack() as stack:
        yield [stack.enter_context(serving(Vllm(**more))) for _ in range(number)]  # type: ignore[misc]  # it gives back what it was given


async def pool_of(found: list[Vllm], slots: int = 1) -> PoolBackend:
    names = [f"server {at}" for at in range(len(found))]
    made = PoolBackend([vllm(product, slots) for product in found], names, look_s=0.02)
    await made.start(lambda phase, detail="": None)
    for product in found:
        product.requests.clear()
    return made


async def ask(backend: Backend, text: str, affinity: str) -> str:
    prompt = await backend.prepare([Message(role="user", content=text)])
    return (await answered(backend, prompt, Sampling(max_tokens=4), affinity=affinity)).text


def asked(product: Product) -> list[Any]:
    return product.sent("/v1/completions")


def completions(product: Product) -> int:
    return len(product.sent("/v1/completions"))


async def test_a_lane_keeps_to_its_server_and_lanes_share_them() -> None:
    with products(2) as found:
        pool = await pool_of(found)
        for at in range(6):
            await asyncio.gather(*(ask(pool, f"{lane} {at}", f"{lane}/verdict") for lane in (0, 1)))
        await pool.close()
        assert [completions(product) for product in found] == [6, 6]
        for product in found:
            texts = ["".join(product.texts[t] for t in b["prompt"]) for b in asked(product)]
            assert len({text.split("\n")[1][:1] for text in texts}) == 1


async def test_a_lane_whose_server_is_busy_goes_to_the_one_that_is_free() -> None:
    with products(2) as found:
        pool = await pool_of(found)
        await ask(pool, "first", "0/verdict")
        for product in found:
            product.latency_s = 0.1
        await asyncio.gather(ask(pool, "one", "0/verdict"), ask(pool, "two", "0/rationale"))
        await pool.close()
        assert sorted(completions(product) for product in found) == [1, 2]


@pytest.mark.parametrize("number", [2, 4])
async def test_n_lanes_keep_n_servers_at_work_at_once(number: int) -> None:
    with products(number) as found:
        pool = await pool_of(found)
        # Every round ends only once all servers have a request, which one alone never brings about.
        barrier = threading.Barrier(number)
        for product in found:
            product.meet = barrier

        async def lane(which: int) -> None:
            for at in range(4):
                prompt = await pool.prepare([Message(role="user", content=f"{which} {at}")])
                await pool.label_probabilities(prompt, YES_NO, affinity=f"{which}/verdict")

        async with asyncio.timeout(60):
            await asyncio.gather(*(lane(which) for which in range(number)))
        await pool.close()
        assert [completions(product) for product in found] == [4] * number


async def test_a_dead_server_is_left_out_and_comes_back() -> None:
    told: list[tuple[str, str]] = []
    came_back = asyncio.Event()

    def tell(phase: str, detail: str = "") -> None:
        told.append((phase, detail))
        if phase == "back":
            came_back.set()

    with ExitStack() as stack:
        first = stack.enter_context(serving(Vllm()))
        second = serving(Vllm())
        dying = second.__enter__()
        port = dying.server_port
        pool = PoolBackend([vllm(first), vllm(dying)], ["first", "second"], look_s=0.02)
        await pool.start(tell)
        await asyncio.gather(*(ask(pool, f"{lane}", f"{lane}/verdict") for lane in (0, 1)))
        second.__exit__(None, None, None)
        # Whichever lane it had, its requests are answered by the other one.
        for lane in (0, 1, 2):
            assert await ask(pool, f"after {lane}", f"{lane}/verdict")
        assert [member.up for member in pool.members] == [True, False]
        assert any(phase == "left out" and detail.startswith("second") for phase, detail in told)
        back = stack.enter_context(serving(Vllm(port=port)))
        async with asyncio.timeout(10):
            await came_back.wait()
        assert ("back", "second") in told
        await asyncio.gather(*(ask(pool, f"back {lane}", f"{lane}/v") for lane in range(4)))
        assert completions(back) > 0
        await pool.close()


async def test_all_dead_is_an_error_after_a_while() -> None:
    with products(2) as found:
        pool = await pool_of(found)
    with pytest.raises(BackendStartError, match=r"None of the servers came back|did not come back"):
        async with asyncio.timeout(60):
            await ask(pool, "anybody", "0/verdict")
    await pool.close()


async def test_one_that_is_not_there_at_the_start_is_left_out() -> None:
    with serving(Vllm()) as gone:
        pass
    with serving(Vllm()) as here:
        pool = PoolBackend([vllm(gone), vllm(here)], ["gone", "here"], look_s=5)
        await pool.start(lambda phase, detail="": None)
        assert await ask(pool, "so", "0/verdict")
        await pool.close()


async def test_servers_with_and_without_probabilities_are_not_mixed() -> None:
    with serving(OpenAi()) as whole, serving(OpenAi(faults=["no logprobs"])) as lacking:
        backends = [OpenAiBackend(options(one), wait_s=0.01) for one in (whole, lacking)]
        pool = PoolBackend(backends, ["whole", "lacking"])
        with pytest.raises(BackendStartError, match="lacking has no label probabilities"):
            await pool.start(lambda phase, detail="": None)
        await pool.close()


async def test_servers_with_other_templates_are_not_mixed() -> None:
    class Other(Vllm):
        def render(self, messages: Any, *, left_open: bool = False) -> str:
            return "[INST] " + super().render(messages, left_open=left_open)

    with serving(Vllm()) as one, serving(Other()) as two:
        pool = PoolBackend([vllm(one), vllm(two)], ["one", "two"])
        with pytest.raises(BackendStartError, match="two makes other tokens"):
            await pool.start(lambda phase, detail="": None)
        await pool.close()
