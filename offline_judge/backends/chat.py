"""Servers that are spoken to in turns of a chat only: what they have in common."""

from __future__ import annotations

import asyncio
import math
from abc import abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, ClassVar, cast

from offline_judge.backends import probe
from offline_judge.backends.gauge import PARAGRAPH, TokenGauge
from offline_judge.backends.labels import MassCount, check_labels
from offline_judge.backends.openai_stream import CompletionStream
from offline_judge.backends.options import EngineOptions
from offline_judge.backends.room import SMALLEST_OUTPUT, room_behind
from offline_judge.backends.running import RunningServer
from offline_judge.backends.tried import TriedBackend
from offline_judge.backends.wire import Framing
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
    Usage,
    without_system,
)
from offline_judge.errors import (
    BackendCrashedError,
    BackendError,
    BackendResponseError,
    ContextOverflowError,
)
from offline_judge.protocols import Backend

ALTERNATIVES = 20
_BUSY = (429, 503)
_MOST_WAITS = 6
_FIRST_WAIT_S = 0.5
_OVERFLOWS = ("context length", "context size", "context window", "exceeds the available context")


@dataclass(frozen=True)
class Told:
    """What a server says of a model.

    Attributes:
        window: Tokens of its context; 0 where it does not tell.
        thinking: The model can think, and be told not to.
        notes: What a user should know.
    """

    window: int = 0
    thinking: bool = False
    notes: tuple[str, ...] = ()


class ChatBackend(TriedBackend):
    """A chat server: no token ids, no counts before a request, perhaps no label probabilities.

    What it does not do is found out at the start and told in `capabilities`.
    """

    name: ClassVar[str]
    product: ClassVar[str]
    paths: ClassVar[tuple[str, ...]] = ("/v1/models",)
    chat_path: ClassVar[str] = "/v1/chat/completions"
    framing: ClassVar[Framing] = "sse"

    def __init__(self, options: EngineOptions, *, wait_s: float = _FIRST_WAIT_S) -> None:
        super().__init__(RunningServer(options, self.paths, self.product))
        self.options = options
        self._wait_s = wait_s
        self._model = options.served_as or options.model_name
        self._slots = asyncio.Semaphore(options.slots)
        self._gauge = TokenGauge()
        self._can_think = False

    @abstractmethod
    async def describe(self) -> Told:
        """What the server says of the model.

        Raises:
            BackendStartError: it has no such model.
        """

    @abstractmethod
    def body(
        self, prompt: Prompt, sampling: Sampling, constraint: Constraint | None
    ) -> dict[str, Any]:
        """A request, streaming."""

    @abstractmethod
    def with_alternatives(self, body: dict[str, Any]) -> dict[str, Any]:
        """The request, asking for the likeliest tokens, too."""

    def answer(self, prompt: Prompt) -> CompletionStream:
        """What takes in the events of an answer."""
        return CompletionStream(prompt)

    async def told(self) -> Capabilities:
        """What the server says of the model, as far as it says anything.

        Raises:
            BackendStartError: it has no such model.
        """
        told = await self.describe()
        self.notes, self._can_think = told.notes, told.thinking
        window = self.options.window
        if told.window:
            window = min(told.window, window)
        else:
            self.notes += (f"{self.product} does not say that its window is {window} tokens.",)
        self._capabilities = Capabilities(
            window=window,
            slots=self.options.slots,
            token_level=False,
            label_probabilities=True,
            constraints=("json_schema",),
            reports_cached_tokens=False,
            thinking_switch=told.thinking,
        )
        await self._gauge_tokens()
        return self._capabilities

    async def repeated(self, which: int) -> str:
        """What it answers where it is to go on with one word."""
        turns = [Message(role="user", content=f"Go on in the same way:{probe.repetition(which)}")]
        answer = self.answer(prompt := await self.prepare(turns))
        async with aclosing(self._events(self.body(prompt, probe.REPEATED, None))) as events:
            async for event in events:
                answer.take(event)
        return answer.generation().text

    async def prepare(
        self, messages: Sequence[Message], *, thinking: bool = False, begun: str = ""
    ) -> Prompt:
        """The turns, with a number of tokens that they will hardly exceed.

        Raises:
            BackendError: the answer is begun already, which such a server cannot go on with.
        """
        if begun or messages[-1].role == "assistant":
            raise BackendError(f"{self.product} cannot go on with an answer that is begun.")
        turns = messages if self.options.system_role else without_system(messages)
        return Prompt(
            messages=tuple(turns),
            tokens=self._gauge.above(turns),
            thinking=thinking and self._can_think,
        )

    async def generate(
        self,
        prompt: Prompt,
        sampling: Sampling,
        constraint: Constraint | None = None,
        *,
        affinity: str = "",
    ) -> AsyncIterator[Delta | Generation]:
        """Stream deltas, then exactly one `Generation`. Closing the iterator cancels.

        Raises:
            ContextOverflowError: prompt and output do not fit, or the server cut the prompt.
            BackendCrashedError: the server broke off; it is waited for before the next request.
            BackendResponseError: the server broke its protocol.
        """
        del affinity
        least = min(sampling.max_tokens, SMALLEST_OUTPUT)
        room = room_behind(prompt, self.capabilities.window, least)
        self._mix_ups.raise_found()
        capped = sampling.model_copy(update={"max_tokens": min(sampling.max_tokens, room)})
        async with self._slots:
            answer = self.answer(prompt)
            # Closed here and now, so that a cancel reaches the server.
            async with aclosing(self._events(self.body(prompt, capped, constraint))) as events:
                async for event in events:
                    if delta := answer.take(event):
                        yield delta
                    if answer.runaway:
                        break
        generation = answer.generation()
        self._check_read(prompt, generation.usage)
        self._count(generation.usage, generation.timings)
        yield generation

    async def label_probabilities(
        self, prompt: Prompt, labels: Sequence[Label], *, affinity: str = ""
    ) -> Labels:
        """Mass of each label at the first token of the answer, and outside them.

        Read without thinking, whose first token would be a thought's. Tokens come as texts: one
        counts for the label whose spelling it is or begins, and for none where it begins spellings
        of several.

        Raises:
            SchemaError: fewer than two labels, or a name twice.
            BackendResponseError: the server named no alternatives.
        """
        del affinity
        check_labels(labels)
        self._mix_ups.raise_found()
        room_behind(prompt, self.capabilities.window, 1)
        async with self._slots:
            answer = self.answer(prompt)
            plain = prompt.model_copy(update={"thinking": False})
            body = self.with_alternatives(self.body(plain, Sampling(max_tokens=1), None))
            async with aclosing(self._events(body)) as events:
                async for event in events:
                    answer.take(event)
        generation = answer.generation()
        self._check_read(prompt, generation.usage)
        self._count(generation.usage, generation.timings)
        if not answer.alternatives:
            raise BackendResponseError("The server named no alternatives for the label's token")
        return text_masses(labels, answer.alternatives).read(generation.usage, generation.timings)

    async def _gauge_tokens(self) -> None:
        """Learn how many tokens the model makes of ordinary text."""
        turns = [Message(role="user", content=PARAGRAPH)]
        await probe.answered(cast(Backend, self), await self.prepare(turns), Sampling(max_tokens=1))

    async def _events(self, body: dict[str, Any]) -> AsyncGenerator[dict[str, Any], None]:
        """The events of a request; a server that is busy is asked again, later and later."""
        wait_s = self._wait_s
        for left in range(_MOST_WAITS, -1, -1):
            wire = await self.engine.wire()
            try:
                async with wire.stream(self.chat_path, body, self.framing) as events:
                    async for event in events:
                        yield event
                return
            except BackendCrashedError as error:
                raise await self.engine.crashed(error, wire) from error
            except BackendResponseError as error:
                if any(words in error.message.lower() for words in _OVERFLOWS):
                    raise ContextOverflowError(error.message, where=error.where) from error
                if error.status not in _BUSY or not left:
                    raise
            await asyncio.sleep(wait_s)
            wait_s *= 2

    def _check_read(self, prompt: Prompt, usage: Usage) -> None:
        """Check that the whole prompt was read, by what the server says it read."""
        self.engine.succeeded()
        if not usage.prompt_tokens:
            return
        least = self._gauge.below(prompt.messages)
        if usage.prompt_tokens < least or usage.prompt_tokens > self.capabilities.window:
            raise ContextOverflowError(
                f"{self.product} read {usage.prompt_tokens} tokens of a prompt that has {least} "
                f"or more, with a window of {self.capabilities.window}: it cut it",
                remedy="Give the server a larger window, or set `window` to the one it has.",
            )
        self._gauge.learn(prompt.messages, usage.prompt_tokens)


def text_masses(labels: Sequence[Label], alternatives: Mapping[str, float]) -> MassCount:
    """Masses of labels out of the log-probabilities of tokens given as texts.

    Raises:
        BackendResponseError: the alternatives are no part of one distribution.
    """
    masses = {text: math.exp(min(0.0, logprob)) for text, logprob in alternatives.items()}
    total = sum(masses.values())
    if not math.isfinite(total) or total > 1.01:
        raise BackendResponseError(f"Alternatives sum to {total}, which no distribution does")
    count = MassCount({label.name: 0.0 for label in labels}, unseen=max(0.0, 1.0 - total))
    for text, mass in masses.items():
        owners = {
            label.name
            for label in labels
            if text.strip() and any(variant.startswith(text) for variant in label.variants())
        }
        if len(owners) == 1:
            count.add(owners.pop(), mass)
    return count
