"""A plain asyncio client that sends recorded completions straight at a llama.cpp server."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import httpx


@dataclass(frozen=True)
class Request:
    """A recorded completion, and which of its sample's requests had ended before it began."""

    body: dict[str, Any]
    after: tuple[int, ...]


@dataclass(frozen=True)
class Replayed:
    """One sample: wall time in seconds, and the raw answers in the order of its requests."""

    seconds: float
    answers: list[bytes]


async def replay(address: str, key: str, samples: Sequence[Sequence[Request]]) -> list[Replayed]:
    """Send all samples, one after another, each as its requests followed one another."""
    headers = {"Authorization": f"Bearer {key}"}
    # The server drops a connection after a stream, so none is kept.
    limits = httpx.Limits(max_keepalive_connections=0)
    async with httpx.AsyncClient(
        base_url=address, headers=headers, limits=limits, timeout=None, trust_env=False
    ) as client:
        return [await _sample(client, requests) for requests in samples]


async def _sample(client: httpx.AsyncClient, requests: Sequence[Request]) -> Replayed:
    began = time.perf_counter()
    tasks: list[asyncio.Task[bytes]] = []
    for request in requests:
        earlier = [tasks[index] for index in request.after]
        tasks.append(asyncio.create_task(_send(client, request.body, earlier)))
    answers = await asyncio.gather(*tasks)
    return Replayed(time.perf_counter() - began, answers)


async def _send(
    client: httpx.AsyncClient, body: dict[str, Any], earlier: list[asyncio.Task[bytes]]
) -> bytes:
    if earlier:
        await asyncio.wait(earlier)
    async with client.stream("POST", "/completion", json=body) as response:
        response.raise_for_status()
        return b"".join([chunk async for chunk in response.aiter_bytes()])
