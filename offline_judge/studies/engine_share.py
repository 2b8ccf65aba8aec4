"""One engine that several runs use in turn, each as if it were its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing

from offline_judge.backends.passing import PassingBackend
from offline_judge.domain.message import (
    Constraint,
    Delta,
    Generation,
    Label,
    Labels,
    Prompt,
    Sampling,
)
from offline_judge.protocols import Backend, StartListener


class EngineShare:
    """Starts a backend once, at the first run that needs it, and ends it when all are done.

    All runs must use it on one event loop, one after another.

    Args:
        backend: Not started yet.
    """

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self._started = False
        self._listener: StartListener | None = None

    def view(self, name: str) -> EngineView:
        """The backend for the runs of one method, whose stages keep to slots of their own."""
        return EngineView(self, name)

    async def start(self, listener: StartListener) -> None:
        """Bring the engine up where it is not; from now on `listener` is told of restarts.

        Raises:
            BackendStartError: it did not come up.
        """
        self._listener = listener
        if not self._started:
            await self.backend.start(self._tell)
            self._started = True

    async def close(self) -> None:
        """End the engine. Safe to call twice."""
        if self._started:
            self._started = False
            await self.backend.close()

    def _tell(self, phase: str, detail: str = "") -> None:
        if self._listener is not None:
            self._listener(phase, detail)


class EngineView(PassingBackend):
    """What one run has of a shared engine: `close` leaves it running.

    Stages of the same name in two methods have other prompts, so the method's name is put into
    the affinity: neither pushes the other's prefix out of its slot.
    """

    def __init__(self, share: EngineShare, method: str) -> None:
        super().__init__(share.backend)
        self._share = share
        self._method = method

    async def start(self, listener: StartListener) -> None:
        """Bring the engine up where it is not.

        Raises:
            BackendStartError: it did not come up.
        """
        await self._share.start(listener)

    async def close(self) -> None:
        """Leave the engine to the next run."""

    async def generate(
        self,
        prompt: Prompt,
        sampling: Sampling,
        constraint: Constraint | None = None,
        *,
        affinity: str = "",
    ) -> AsyncIterator[Delta | Generation]:
        """Pass the engine's stream on; closing it closes the engine's."""
        own = self._own(affinity)
        stream = super().generate(prompt, sampling, constraint, affinity=own)
        async with aclosing(stream) as items:  # type: ignore[type-var]  # a generator of its own
            async for item in items:
                yield item

    async def label_probabilities(
        self, prompt: Prompt, labels: Sequence[Label], *, affinity: str = ""
    ) -> Labels:
        """Let the engine read the labels."""
        return await super().label_probabilities(prompt, labels, affinity=self._own(affinity))

    def _own(self, affinity: str) -> str:
        lane, slash, stage = affinity.partition("/")
        return f"{lane}{slash}{self._method}.{stage}" if slash else affinity
