"""Requests on an engine's slots: pinned, checked, cancelled for certain, watched for mix-ups."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from offline_judge.backends.dialect import usage
from offline_judge.backends.rates import Rates
from offline_judge.backends.serving import Serving
from offline_judge.backends.slots import SlotTable
from offline_judge.domain.message import Prompt
from offline_judge.errors import (
    BackendCrashedError,
    BackendError,
    BackendResponseError,
    ContextOverflowError,
)

_SETTLE_S = 3.0
_POLL_S = 0.05
_MOST_CRASHES = 2


@dataclass
class Hold:
    """A slot in one request's hands, and whether the engine may still be working on it."""

    slot: int
    busy: bool = False


class Requests:
    """Completions on slots, and plain questions, over an engine that may have to be revived.

    Attributes:
        heads: Token ids each slot was last sent, which its prefix cache begins with.
    """

    def __init__(self, engine: Serving, slots: int, rates: Rates) -> None:
        self.heads: dict[int, tuple[int, ...]] = {}
        self._engine = engine
        self._rates = rates
        self._slots = SlotTable(slots)
        self._crashes: Counter[tuple[int, ...]] = Counter()
        self._settling: set[asyncio.Task[None]] = set()

    async def get(self, path: str) -> Any:
        """Ask something that needs no slot."""
        return await self._plain("GET", path, None)

    async def post(self, path: str, body: dict[str, Any]) -> Any:
        """Ask something that needs no slot."""
        return await self._plain("POST", path, body)

    @asynccontextmanager
    async def hold(self, affinity: str) -> AsyncIterator[Hold]:
        """Hold the affinity's slot; the next request has it once the engine has let go of it."""
        async with self._held(await self._slots.acquire(affinity)) as hold:
            yield hold

    @asynccontextmanager
    async def hold_slot(self, slot: int) -> AsyncIterator[Hold]:
        """Hold this very slot, whosever it is."""
        await self._slots.take(slot)
        async with self._held(slot) as hold:
            yield hold

    async def events(
        self, prompt: Prompt, body: dict[str, Any], hold: Hold
    ) -> AsyncGenerator[dict[str, Any], None]:
        """The events of one completion, the final one last and checked.

        Raises:
            ContextOverflowError: the engine says that the prompt does not fit.
            BackendCrashedError: the engine died; it is being started again.
            BackendResponseError: the engine broke its protocol, or died twice over this prompt.
        """
        if self._crashes[prompt.token_ids] >= _MOST_CRASHES:
            raise BackendResponseError(
                f"The engine died {_MOST_CRASHES} times over this prompt; it is not sent again"
            )
        final: dict[str, Any] | None = None
        wire = await self._engine.wire()
        hold.busy = True
        try:
            async with wire.stream("/completion", body) as events:
                last = time.monotonic()
                async for event in events:
                    self._rates.gap(time.monotonic() - last)
                    if event.get("stop"):
                        final = event
                    else:
                        yield event
                    last = time.monotonic()
        except BackendCrashedError as error:
            hold.busy = False
            self._crashes[prompt.token_ids] += 1
            self.heads.clear()
            raise await self._engine.crashed(error, wire) from error
        except ContextOverflowError:
            hold.busy = False
            raise
        if final is None:
            raise BackendResponseError("The stream ended without its final event")
        hold.busy = False
        check_final(final, prompt, hold.slot)
        self.heads[hold.slot] = prompt.token_ids
        self._crashes.pop(prompt.token_ids, None)
        self._engine.succeeded()
        yield final

    async def close(self) -> None:
        """Stop waiting for cancelled requests. Safe to call twice."""
        for task in tuple(self._settling):
            task.cancel()
        await asyncio.gather(*self._settling, return_exceptions=True)

    @asynccontextmanager
    async def _held(self, slot: int) -> AsyncIterator[Hold]:
        hold = Hold(slot)
        try:
            yield hold
        finally:
            if hold.busy:
                # A task of its own: whoever cancels a second time must not leave the slot behind.
                task = asyncio.create_task(self._settle(slot))
                self._settling.add(task)
                task.add_done_callback(self._settling.discard)
                await asyncio.shield(task)
            else:
                self._slots.release(slot)

    async def _settle(self, slot: int) -> None:
        """Wait until the engine has dropped a request that was cancelled; else start it again."""
        limit = _SETTLE_S + self._rates.batch_s(self._engine.options.chosen_batch())
        try:
            async with asyncio.timeout(limit):
                # The server has no event for this, so it is asked again and again.
                while await self._is_processing(slot):  # noqa: ASYNC110
                    await asyncio.sleep(_POLL_S)
        except TimeoutError:
            self.heads.clear()
            await self._engine.restart(f"slot {slot} still busy {limit:.1f} s after a cancel")
        except BackendError:
            # The engine is gone, and its slots with it; the next request starts it again.
            self.heads.clear()
        finally:
            self._slots.release(slot)

    async def _is_processing(self, slot: int) -> bool:
        states = await (await self._engine.wire()).get("/slots")
        return any(state["id"] == slot and state["is_processing"] for state in states)

    async def _plain(self, method: str, path: str, body: dict[str, Any] | None) -> Any:
        wire = await self._engine.wire()
        try:
            return await (wire.get(path) if method == "GET" else wire.post(path, body))
        except BackendCrashedError as error:
            raise await self._engine.crashed(error, wire) from error


def check_final(final: dict[str, Any], prompt: Prompt, slot: int) -> None:
    """Check that the engine read the whole prompt, on the slot it was sent to.

    Raises:
        BackendResponseError: it did not.
    """
    read = usage(final).prompt_tokens
    if final.get("truncated") or read != prompt.tokens:
        raise BackendResponseError(
            f"The engine cut the prompt: {prompt.tokens} tokens were sent and it read {read}"
        )
    if final.get("id_slot") != slot:
        raise BackendResponseError(
            f"Slot {final.get('id_slot')} answered a request that was pinned to slot {slot}"
        )
