"""A backend seen from outside: passes every call on and tells what each lane does now."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import ClassVar

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

Watch = Callable[[str, str], None]
"""Takes an affinity and what its request does now, for people."""


class WatchedBackend:
    """Passes everything to `backend`, and tells what goes on.

    Args:
        backend: Does the work.
        watch: Told what each request does now.
        answered: Told of each sign that the engine is up and answers.
    """

    name: ClassVar[str] = ""

    def __init__(
        self, backend: Backend, watch: Watch, answered: Callable[[], None] = lambda: None
    ) -> None:
        # A class's own by the protocol, but here the backend's: it is part of cache keys.
        self.__dict__["name"] = backend.name
        self._backend = backend
        self._watch = watch
        self._answered = answered

    @property
    def capabilities(self) -> Capabilities:
        """Those of the backend."""
        return self._backend.capabilities

    async def start(self, listener: StartListener) -> None:
        """Start the backend."""
        await self._backend.start(listener)

    async def close(self) -> None:
        """Close the backend."""
        await self._backend.close()

    async def prepare(self, messages: Sequence[Message], *, thinking: bool = False) -> Prompt:
        """Let the backend prepare a prompt."""
        return await self._backend.prepare(messages, thinking=thinking)

    async def generate(
        self,
        prompt: Prompt,
        sampling: Sampling,
        constraint: Constraint | None = None,
        *,
        affinity: str = "",
    ) -> AsyncIterator[Delta | Generation]:
        """Pass the backend's stream on; closing it closes the backend's."""
        self._watch(affinity, f"reading {prompt.tokens} tokens")
        stream = self._backend.generate(prompt, sampling, constraint, affinity=affinity)
        written = 0
        try:
            async for item in stream:
                self._answered()
                if isinstance(item, Delta):
                    written += bool(item.text)
                    self._watch(affinity, _doing(item, prompt, written))
                yield item
        finally:
            close = getattr(stream, "aclose", None)
            if close is not None:
                await close()

    async def label_probabilities(
        self, prompt: Prompt, labels: Sequence[Label], *, affinity: str = ""
    ) -> Labels:
        """Let the backend read the labels."""
        self._watch(affinity, f"reading {prompt.tokens} tokens")
        found = await self._backend.label_probabilities(prompt, labels, affinity=affinity)
        self._answered()
        return found


def _doing(delta: Delta, prompt: Prompt, written: int) -> str:
    if written:
        return f"writing, {written} tokens"
    return f"reading {delta.prompt_read or 0} of {prompt.tokens} tokens"
