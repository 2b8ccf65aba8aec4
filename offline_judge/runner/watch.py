"""A backend seen from outside: passes every call on and tells what each request does now."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import aclosing, contextmanager

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
from offline_judge.protocols import Backend
from offline_judge.runner.board import Board
from offline_judge.runner.stopping import StopSwitch


class WatchedBackend(PassingBackend):
    """Passes everything to `backend`, tells what goes on, and begins nothing during a pause.

    Args:
        backend: Does the work.
        board: Told what each request does now.
        switch: Says when there is a pause.
        answered: Told of each sign that the engine is up and answers.
    """

    def __init__(
        self,
        backend: Backend,
        board: Board,
        switch: StopSwitch,
        answered: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(backend)
        self._board = board
        self._switch = switch
        self._answered = answered

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
            stream = super().generate(prompt, sampling, constraint, affinity=affinity)
            async with aclosing(stream) as items:  # type: ignore[type-var]  # a generator of its own
                async for item in items:
                    self._answered()
                    if isinstance(item, Delta):
                        self._tell(call, item)
                    yield item

    async def label_probabilities(
        self, prompt: Prompt, labels: Sequence[Label], *, affinity: str = ""
    ) -> Labels:
        """Let the backend read the labels."""
        await self._switch.going()
        with self._request(affinity, prompt):
            found = await super().label_probabilities(prompt, labels, affinity=affinity)
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
