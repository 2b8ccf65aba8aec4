"""The rate of N servers of one model for that of one: loopback servers of fixed latency.

Each server takes one request at a time and answers after a fixed time, so what is lost is what the
pool itself costs. The servers are those of the contract tests.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from contextlib import ExitStack
from pathlib import Path

from benching import bootstrap, machine

from offline_judge.backends.options import EngineOptions
from offline_judge.backends.pool import PoolBackend
from offline_judge.backends.running import RunningServer
from offline_judge.backends.vllm import VllmBackend
from offline_judge.domain.message import Label, Message, Prompt

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "contract"))
from fake_servers import MODEL, Product, serving
from fake_vllm import Vllm

LATENCY_S = 0.1
REQUESTS = 48
AIM = 0.8
LABELS = (Label(name="true", text="Yes"), Label(name="false", text="No"))


async def seconds(number: int, requests: int) -> float:
    """Seconds that so many servers take for so many readings of labels, a lane a server."""
    with ExitStack() as stack:
        products: list[Product] = [stack.enter_context(serving(Vllm())) for _ in range(number)]
        pool = PoolBackend([_backend(one) for one in products], [one.url for one in products])
        await pool.start(_silent)
        prompts = [
            await pool.prepare([Message(role="user", content=f"Is it {at}?")])
            for at in range(requests)
        ]
        for product in products:
            product.latency_s = LATENCY_S
        begun = time.monotonic()
        await asyncio.gather(*(_lane(pool, lane, prompts[lane::number]) for lane in range(number)))
        took = time.monotonic() - begun
        await pool.close()
        return took


async def _lane(pool: PoolBackend, lane: int, prompts: list[Prompt]) -> None:
    for prompt in prompts:
        await pool.label_probabilities(prompt, LABELS, affinity=f"{lane}/verdict")


def _silent(phase: str, detail: str = "") -> None:
    """Nobody listens."""


def _backend(product: Product) -> VllmBackend:
    options = EngineOptions(
        model_name=MODEL, served_as=MODEL, base_url=product.url, window=512, slots=1
    )
    return VllmBackend(options, RunningServer(options, ("/v1/models",), "vLLM"))


def main() -> int:
    """Measure and print; 1 where the aim is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    print(f"{machine()}; {REQUESTS} readings, {LATENCY_S} s each")
    kept = True
    for number in (2, 4, 8):
        pairs = [
            (asyncio.run(seconds(1, REQUESTS)), asyncio.run(seconds(number, REQUESTS)))
            for _ in range(arguments.repeats)
        ]
        ratio = sum(one for one, _ in pairs) / sum(many for _, many in pairs)
        low, high = bootstrap(
            pairs, lambda drawn: sum(one for one, _ in drawn) / sum(many for _, many in drawn)
        )
        kept = kept and ratio >= AIM * number
        print(
            f"{number} servers: {ratio:.2f} [{low:.2f}, {high:.2f}] times the rate of one, aim "
            f"{AIM * number:.1f}, n = {arguments.repeats}"
        )
    return int(not kept)


if __name__ == "__main__":
    raise SystemExit(main())
