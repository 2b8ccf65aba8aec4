"""Owns sending: a request goes out, and again a bounded number of times when the engine fails."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from offline_judge.domain.judgment import UnscoredReason
from offline_judge.domain.message import (
    Constraint,
    FinishReason,
    Generation,
    Label,
    Labels,
    Message,
    Prompt,
    Sampling,
    Usage,
)
from offline_judge.errors import (
    BackendCrashedError,
    BackendError,
    BackendResponseError,
    ContextOverflowError,
    UnscoredError,
)
from offline_judge.judge.calls import Call, Recorder, hash_messages
from offline_judge.protocols import Backend

T = TypeVar("T")


@dataclass
class Budget:
    """What one `ask` or `read` may still repeat; faults of transport and of format apart.

    A prompt that crashed the engine twice is not sent a third time.
    """

    crashes: int = 1
    responses: int = 1
    corrections: int = 1
    enlargements: int = 1


@dataclass
class RunMemory:
    """What all samples of a run share: prompts that kill the engine, warnings already given."""

    quarantined: set[str] = field(default_factory=set)
    warned: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Transport:
    """A backend with bounded repeats, for one sample in one lane.

    A prompt that crashes the engine more often than the budget allows is quarantined: no sample
    of this run sends it again.
    """

    backend: Backend
    memory: RunMemory
    lane: int
    recorder: Recorder

    async def prepare(
        self,
        messages: Sequence[Message],
        budget: Budget,
        *,
        thinking: bool = False,
        begun: str = "",
    ) -> Prompt:
        """Render and count tokens.

        Raises:
            UnscoredError: backend or overflow.
        """
        identity = hash_messages(messages)
        # A count is no request for an answer, so its failures are no events.
        return await self._send(
            lambda: self.backend.prepare(messages, thinking=thinking, begun=begun),
            identity,
            budget,
            lambda _: None,
        )

    async def generate(
        self, call: Call, sampling: Sampling, constraint: Constraint | None, budget: Budget
    ) -> Generation:
        """One whole answer.

        Raises:
            UnscoredError: backend or overflow.
        """

        async def send() -> Generation:
            last = None
            stream = self.backend.generate(
                call.prompt, sampling, constraint, affinity=self._affinity(call)
            )
            try:
                async for item in stream:
                    last = item
            finally:
                # A cancel must reach the engine now, not when the stream is collected.
                close = getattr(stream, "aclose", None)
                if close is not None:
                    await close()
            if not isinstance(last, Generation):
                raise BackendResponseError("the answer's stream ended without its last part")
            if last.finish_reason is FinishReason.CANCELLED:
                raise BackendResponseError("the engine cancelled the answer by itself")
            self._check_read(call, last.usage)
            return last

        return await self._send(send, call.prompt_hash, budget, self._failed(call))

    async def labels(self, call: Call, labels: Sequence[Label], budget: Budget) -> Labels:
        """Label masses behind a prompt.

        Raises:
            UnscoredError: backend or overflow.
            BackendError: this engine gives no label probabilities.
        """
        if not self.backend.capabilities.label_probabilities:
            raise BackendError(f"The engine `{self.backend.name}` gives no label probabilities")

        async def send() -> Labels:
            found = await self.backend.label_probabilities(
                call.prompt, labels, affinity=self._affinity(call)
            )
            if found.masses.keys() != {label.name for label in labels}:
                raise BackendResponseError(f"masses came for {sorted(found.masses)}")
            self._check_read(call, found.usage)
            return found

        return await self._send(send, call.prompt_hash, budget, self._failed(call))

    def _affinity(self, call: Call) -> str:
        return f"{self.lane}/{call.place or call.stage.partition('.')[0]}"

    def _failed(self, call: Call) -> Callable[[str], None]:
        return lambda problem: self.recorder.failed(call, problem)

    def _check_read(self, call: Call, usage: Usage) -> None:
        """Some servers drop the front of a long prompt and answer what is left of it."""
        if self.backend.capabilities.token_level and usage.prompt_tokens < call.prompt.tokens:
            raise ContextOverflowError(
                f"the engine read {usage.prompt_tokens} of the prompt's {call.prompt.tokens} tokens"
            )

    async def _send(
        self,
        send: Callable[[], Awaitable[T]],
        prompt_hash: str,
        budget: Budget,
        failed: Callable[[str], None],
    ) -> T:
        name = f"prompt {prompt_hash[:12]}"
        if prompt_hash in self.memory.quarantined:
            detail = f"{name} crashed the engine before and is not sent again"
            raise UnscoredError(UnscoredReason.BACKEND, detail)
        while True:
            try:
                return await send()
            except ContextOverflowError as error:
                failed(f"overflow: {error}")
                raise UnscoredError(UnscoredReason.OVERFLOW, str(error)) from error
            except BackendCrashedError as error:
                failed(f"backend: {error}")
                budget.crashes -= 1
                if budget.crashes < 0:
                    self.memory.quarantined.add(prompt_hash)
                    detail = f"{name} crashed the engine each time: {error}"
                    raise UnscoredError(UnscoredReason.BACKEND, detail) from error
            except BackendResponseError as error:
                failed(f"backend: {error}")
                budget.responses -= 1
                if budget.responses < 0:
                    raise UnscoredError(UnscoredReason.BACKEND, f"{name}: {error}") from error
