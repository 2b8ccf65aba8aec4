"""A backend that passes everything on, for those that change a part of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import ClassVar

from offline_judge.domain.capability import EngineFacts
from offline_judge.domain.message import (
    Capabilities,
    Constraint,
    Delta,
    Generation,
    Label,
    Labels,
    Message,
    Prompt,
    Sampling,
)
from offline_judge.protocols import Backend, StartListener


class PassingBackend:
    """Is what `backend` is, and does what it does.

    Args:
        backend: Does the work.
    """

    name: ClassVar[str] = ""

    def __init__(self, backend: Backend) -> None:
        # A class's own by the protocol, but here the backend's: it is part of cache keys.
        self.__dict__["name"] = backend.name
        self.backend = backend

    @property
    def capabilities(self) -> Capabilities:
        """Those of the backend."""
        return self.backend.capabilities

    @property
    def facts(self) -> EngineFacts:
        """Those of the backend."""
        return self.backend.facts

    async def start(self, listener: StartListener) -> None:
        """Start the backend."""
        await self.backend.start(listener)

    async def close(self) -> None:
        """Close the backend."""
        await self.backend.close()

    async def prepare(
        self, messages: Sequence[Message], *, thinking: bool = False, begun: str = ""
    ) -> Prompt:
        """Let the backend prepare a prompt."""
        return await self.backend.prepare(messages, thinking=thinking, begun=begun)

    async def generate(
        self,
        prompt: Prompt,
        sampling: Sampling,
        constraint: Constraint | None = None,
        *,
        affinity: str = "",
    ) -> AsyncIterator[Delta | Generation]:
        """Pass the backend's stream on; closing it closes the backend's."""
        stream = self.backend.generate(prompt, sampling, constraint, affinity=affinity)
        try:
            async for item in stream:
                yield item
        finally:
            close = getattr(stream, "aclose", None)
            if close is not None:
                await close()

    async def label_probabilities(
        self, prompt: Prompt, labels: Sequence[Label], *, affinity: str = ""
    ) -> Labels:
        """Let the backend read the labels."""
        return await self.backend.label_probabilities(prompt, labels, affinity=affinity)
