"""What backends behind a server share: brought up, asked, tried, watched for mix-ups, let go."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from typing import ClassVar, cast

from offline_judge.backends import probe
from offline_judge.backends.mixups import MixUpWatch
from offline_judge.backends.rates import Rates
from offline_judge.backends.serving import Serving
from offline_judge.domain.capability import EngineFacts
from offline_judge.domain.message import Capabilities, Timings, Usage
from offline_judge.errors import BackendStartError
from offline_judge.protocols import Backend, StartListener


class TriedBackend(ABC):
    """A backend whose promises are tried before anybody relies on them.

    Args:
        server: Keeps the server up, or knows where it is.
    """

    name: ClassVar[str]
    slot_word: ClassVar[str] = "requests at once"
    """What its slots are called in messages."""

    def __init__(self, server: Serving) -> None:
        self.engine = server
        self.rates = Rates()
        self.notes: tuple[str, ...] = ()
        self._capabilities: Capabilities | None = None
        self._mix_ups = MixUpWatch(self.check_mix_ups)
        self._finished = 0

    @abstractmethod
    async def told(self) -> Capabilities:
        """What the server says of itself and of the model.

        Raises:
            BackendStartError: it has no such model, or is another product.
        """

    @abstractmethod
    async def repeated(self, which: int) -> str:
        """What it goes on with behind `probe.repetition(which)`."""

    @property
    def capabilities(self) -> Capabilities:
        """What the engine does as it runs now; valid after `start`."""
        assert self._capabilities is not None, "read before `start`"
        return self._capabilities

    @property
    def facts(self) -> EngineFacts:
        """What is known of the engine once it is up."""
        server = self.engine
        return EngineFacts(version=server.version, offloaded=server.offloaded, notes=self.notes)

    async def start(self, listener: StartListener) -> None:
        """Bring the server up, ask what it is, and try out what it promises.

        Raises:
            BackendStartError: it did not come up, is not what it was taken for, or answers of two
                requests get mixed up.
        """
        try:
            await self.engine.start(listener)
            listener("probe", "window, constraint, seed, label probabilities, mix-ups")
            await self._try_out()
        except BaseException:
            await self.close()
            raise
        can, asked = self.capabilities, self.engine.options.window
        other = "" if can.window == asked else f" (asked for {asked})"
        on_gpu = self.engine.offloaded
        layers = f", {on_gpu[0]} of {on_gpu[1]} layers on the GPU" if on_gpu else ""
        slots = f"{can.slots} {self.slot_word} of up to {can.window} tokens"
        listener("ready", f"{slots}{other}{layers}")

    async def close(self) -> None:
        """End or let go of the server. Safe to call twice."""
        await self._mix_ups.close()
        await self.engine.close()

    async def check_mix_ups(self) -> None:
        """Let two requests repeat a word each at once.

        Raises:
            BackendStartError: one of them said the other's word.
        """
        if self.capabilities.slots > 1:
            probe.check_mix_up(await asyncio.gather(self.repeated(0), self.repeated(1)))

    async def _try_out(self) -> None:
        try:
            self._capabilities = await self.told()
            await self.check_mix_ups()
            thinks = self.engine.options.thinks
            # That each of them is a backend is proved where its file ends.
            self._capabilities = await probe.tried(cast(Backend, self), thinking=thinks)
        except (KeyError, IndexError, TypeError, ValueError) as error:
            # Every shape of an answer is known by now, so this is another product's.
            raise BackendStartError(
                f"What answers is not what `{self.name}` was made for: {error!r}",
                where=self.engine.address,
                remedy="Check the kind and the address of the server.",
            ) from error

    def _count(self, usage: Usage, timings: Timings) -> None:
        """Count a finished request, and look for mix-ups when it is time."""
        self.rates.add(usage, timings)
        self._finished += 1
        self._mix_ups.finished(self._finished)
