"""What can be told before the first sample: prompts that do not fit, and how long it will take."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from offline_judge.domain.message import Generation, Message, Sampling
from offline_judge.domain.sample import Sample
from offline_judge.errors import BackendError
from offline_judge.protocols import Backend, Method, Values

SAFE_BYTES_PER_TOKEN = 2
"""Fewer bytes than a token of running text has in any language a judge is used for; digits are
counted as a token each, since many tokenizers split numbers so."""

COUNTING_BUDGET_S = 15.0
"""After this time the remaining prompts are judged by their length and the ratio seen so far."""

_WARM_UP_TOKENS = 8
_WARM_UP_S = 60.0


class Rendering(Protocol):
    """A rendered template, as far as counting needs it."""

    @property
    def messages(self) -> tuple[Message, ...]:
        """The conversation."""


Render = Callable[[str, Values], Rendering]
"""Renders one of the method's templates by its bare name."""


@dataclass(frozen=True)
class Rates:
    """Tokens a second the engine reads and writes."""

    read: float
    write: float


@dataclass(frozen=True)
class Survey:
    """What counting found.

    Attributes:
        too_long: Ids of samples with a prompt that cannot fit, in the order given.
        tokens_to_read: Tokens of all largest prompts, fixed heads left out, about.
        tokens_to_write: Output tokens of all largest prompts at most.
        guessed: Samples whose length was only estimated, because counting took too long.
    """

    too_long: tuple[str, ...]
    tokens_to_read: float
    tokens_to_write: int
    guessed: int = 0

    def seconds(self, rates: Rates | None, lanes: int) -> float | None:
        """Estimated time for all samples; None where the rates are not known.

        Lanes share the processor: reading gains nothing from them, writing about half.
        """
        if rates is None:
            return None
        gain = 1 + 0.5 * (lanes - 1)
        return self.tokens_to_read / rates.read + self.tokens_to_write / rates.write / gain


class Surveyor:
    """Counts the largest prompts of samples against the window.

    A prompt is sent to the tokenizer only where its length leaves doubt: where its digits and
    half its other bytes, with the output, exceed the window. Shorter ones fit.

    Args:
        method: Names the largest prompts of a sample.
        render: Renders the method's templates.
        backend: Started; counts tokens.
        thought: Tokens that the judge may think before each answer.
        clock: Monotonic seconds, for the time budget.
    """

    def __init__(
        self,
        method: Method,
        render: Render,
        backend: Backend,
        *,
        thought: int = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._thought = thought
        self._method = method
        self._render = render
        self._backend = backend
        self._clock = clock
        self._window = backend.capabilities.window
        self._bytes_per_token = 4.0
        self._heads: dict[str, int] = {}

    async def survey(self, samples: Iterable[Sample]) -> Survey:
        """Count all samples; takes about `COUNTING_BUDGET_S` at most."""
        deadline = self._clock() + COUNTING_BUDGET_S
        too_long: list[str] = []
        read, write, guessed = 0.0, 0, 0
        for sample in samples:
            exact = self._clock() < deadline
            guessed += not exact
            fits = True
            for template, values, answer in self._method.largest_prompts(sample):
                output = answer + self._thought
                messages = self._render(template, values).messages
                tokens = await self._tokens(messages, output, exact=exact)
                fits = fits and tokens + output <= self._window
                read += max(0.0, tokens - self._head(template, messages))
                write += output
            if not fits:
                too_long.append(sample.id)
            await asyncio.sleep(0)  # rendering never waits, and a stop must be heard meanwhile
        return Survey(tuple(too_long), read, write, guessed)

    async def _tokens(self, messages: Sequence[Message], output: int, *, exact: bool) -> float:
        text = "".join(message.content for message in messages)
        size = len(text.encode("utf-8", "surrogatepass"))
        if not exact or _at_most(text, size) + output <= self._window:
            return size / self._bytes_per_token
        prompt = await self._backend.prepare(messages)
        if prompt.tokens > 0:
            self._bytes_per_token = max(1.0, size / prompt.tokens)
        return prompt.tokens

    def _head(self, template: str, messages: Sequence[Message]) -> float:
        """Tokens of the fixed text in front, which a slot reads once only."""
        if template not in self._heads:
            head = "".join(message.content for message in messages if message.role == "system")
            self._heads[template] = len(head.encode("utf-8", "surrogatepass"))
        return self._heads[template] / self._bytes_per_token


def _at_most(text: str, size: int) -> float:
    digits = sum(map(text.count, "0123456789"))
    return digits + (size - digits) / SAFE_BYTES_PER_TOKEN


async def measure_rates(
    backend: Backend, heads: Mapping[str, Sequence[Message]], *, affinity_lane: int = 0
) -> Rates | None:
    """Time the engine on the fixed heads of the first stage, which it has to read anyhow.

    Args:
        backend: Started.
        heads: Stage to the system turn of its prompts; the first one is used.
        affinity_lane: Lane whose slot reads it, so that the reading serves the run.

    Returns:
        None where the engine tells no timings or the measurement failed.
    """
    if not heads:
        return None
    stage, head = next(iter(heads.items()))
    sampling = Sampling(max_tokens=_WARM_UP_TOKENS)
    try:
        prompt = await backend.prepare([*head, Message(role="user", content="Hello.")])
        if prompt.tokens + _WARM_UP_TOKENS > backend.capabilities.window:
            return None
        stream = backend.generate(prompt, sampling, affinity=f"{affinity_lane}/{stage}")
        async with asyncio.timeout(_WARM_UP_S):
            last = [item async for item in stream][-1:]
    except (BackendError, TimeoutError):
        # An estimate is a courtesy; the first sample will meet the same fault and record it.
        return None
    return next((_rates(item) for item in last if isinstance(item, Generation)), None)


def _rates(generation: Generation) -> Rates | None:
    usage, timings = generation.usage, generation.timings
    if timings.prompt_s <= 0 or timings.generate_s <= 0 or usage.read_anew <= 0:
        return None
    return Rates(
        usage.read_anew / timings.prompt_s,
        # The first token comes out of reading the prompt.
        max(1, usage.completion_tokens - 1) / timings.generate_s,
    )
