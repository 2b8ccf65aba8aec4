"""A backend seen from outside: passes every call on and tells what each request does now."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
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
from offline_judge.runner.board import Board
from offline_judge.runner.stopping import StopSwitch


class WatchedBackend:
    """Passes everything to `backend`, tells what goes on, and begins nothing during a pause.

    Args:
        backend: Does the work.
        board: Told what each request does now.
        switch: Says when there is a pause.
        answered: Told of each sign that the engine is up and answers.
    """

    name: ClassVar[str] = ""

    def __init__(
        self,
        backend: Backend,
        board: Board,
        switch: StopSwitch,
        answered: Callable[[], None] = lambda: None,
    ) -> None:
        # A class's own by the protocol, but here the backend's: it is part of cache keys.
        self.__dict__["name"] = backend.name
        self._backend = backend
        self._board = board
        self._switch = switch
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

    async def prepare(
        self, messages: Sequence[Message], *, thinking: bool = False, begun: str = ""
    ) -> Prompt:
        """Let the backend prepare a prompt."""
        return await self._backend.prepare(messages, thinking=thinking, begun=begun)

    async def generate(
        self,
        prompt: Prompt,
        sampling: Sampling,
        constraint: Constraint | None = None,
        *,
        affinity: str = "",
    ) -> AsyncIterator[Delta | Generation]:
        """Pass the backend's stream on; closing it closes the backend's."""
        await self._switch.going()
        with self._request(affinity, prompt) as call:
            stream = self._backend.generate(prompt, sampling, constraint, affinity=affinity)
            try:
                async for item in stream:
                    self._answered()
                    if isinstance(item, Delta):
                        self._tell(call, item)
                    yield item
            finally:
                close = getattr(stream, "aclose", None)
                if close is not None:
                    await close()

    async def label_probabilities(
        self, prompt: Prompt, labels: Sequence[Label], *, affinity: str = ""
    ) -> Labels:
        """Let the backend read the labels."""
        await self._switch.going()
        with self._request(affinity, prompt):
            found = await self._backend.label_probabilities(prompt, labels, affinity=affinity)
        self._answered()
        return found

    @contextmanager
    def _request(self, affinity: str, prompt: Prompt) -> Iterator[int]:
        call = self._board.begin(affinity, prompt.tokens, self.capabilities.slots)
        try:
            yield call
        finally:
            self._board.end(call)

    def _tell(self, call: int, delta: Delta) -> None:
        if delta.text:
            self._board.write(call, delta.text)
        elif delta.prompt_read is not None:
            self._board.read(call, delta.prompt_read)
