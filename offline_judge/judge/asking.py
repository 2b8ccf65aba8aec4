"""Owns the way from a prompt to an accepted answer: send, check, repeat within bounds, give up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from offline_judge.domain.judgment import UnscoredReason
from offline_judge.domain.message import Constraint, FinishReason, Generation, Message, Sampling
from offline_judge.errors import UnscoredError
from offline_judge.judge.calls import Call, Recorder
from offline_judge.judge.transport import Budget, Transport
from offline_judge.prompting.fence import unfenced
from offline_judge.prompting.library import CORRECTION, TemplateLibrary
from offline_judge.prompting.thinking import split_thinking
from offline_judge.protocols import AnswerSchema

T = TypeVar("T")

# Cuts off the long tail a small model strays into once it is sampled.
SAMPLED_TOP_P = 0.95
_PROBLEM_CHARS = 200
# Reasons whose rejected answer the judge is shown with what was wrong. Shown a refusal or
# nothing at all, a model only repeats it.
_CORRECTABLE = (UnscoredReason.MALFORMED, UnscoredReason.OFF_MENU)


@dataclass(frozen=True)
class Asking(Generic[T]):
    """One question to the judge, with what it needs to be asked again.

    Attributes:
        schema: What the answer must look like.
        constraint: What the engine is told of it.
        transport: Sends.
        recorder: Is told of every attempt.
        library: Has the turn that names what was wrong.
        window: Tokens one slot holds.
        retry_temperature: Least temperature of a corrective retry.
        budget: What may still be repeated.
    """

    schema: AnswerSchema[T]
    constraint: Constraint | None
    transport: Transport
    recorder: Recorder
    library: TemplateLibrary
    window: int
    retry_temperature: float
    budget: Budget

    async def answer(self, call: Call, sampling: Sampling) -> tuple[T, str]:
        """The checked answer and its raw text.

        Raises:
            UnscoredError: with the reason of the last attempt.
        """
        attempt, draw = call, sampling
        while True:
            generation = await self.transport.generate(attempt, draw, self.constraint, self.budget)
            try:
                value, text = accepted(generation, self.schema, attempt.rendered.messages)
            except UnscoredError as problem:
                self.recorder.generated(attempt, generation, draw.seed, str(problem))
                draw = self._next_draw(attempt, draw, generation, problem)
                if problem.reason in _CORRECTABLE:
                    attempt = await self._corrected(call, generation, problem, draw) or call
                continue
            self.recorder.generated(attempt, generation, draw.seed)
            return value, text

    def _next_draw(
        self, call: Call, draw: Sampling, generation: Generation, problem: UnscoredError
    ) -> Sampling:
        """How the next attempt is drawn; raises the problem where there is none."""
        change: dict[str, object] = {"seed": draw.seed + 1}
        if generation.finish_reason is FinishReason.LENGTH:
            limit = min(2 * draw.max_tokens, self.window - call.prompt.tokens)
            if self.budget.enlargements == 0 or limit <= draw.max_tokens:
                raise problem
            self.budget.enlargements -= 1
            change["max_tokens"] = limit
        else:
            if self.budget.corrections == 0:
                raise problem
            self.budget.corrections -= 1
            # At temperature 0 another seed would give the same answer.
            change["temperature"] = max(draw.temperature, self.retry_temperature)
            change["top_p"] = SAMPLED_TOP_P
        return draw.model_copy(update=change)

    async def _corrected(
        self, call: Call, generation: Generation, problem: UnscoredError, draw: Sampling
    ) -> Call | None:
        """The conversation with the rejected answer and what was wrong; None where it cannot be."""
        follows = call.turn(generation.text)
        if not follows.messages[-1].content:
            return None
        rendered = self.library.render(
            CORRECTION, {"problem": problem.detail[:_PROBLEM_CHARS]}, follows.messages
        )
        prompt = await self.transport.prepare(rendered.messages, self.budget)
        if prompt.tokens + draw.max_tokens > self.window:
            return None
        reply = follows.messages[-1].content
        follows_hash = follows.prompt_hash
        return replace(call, rendered=rendered, prompt=prompt, follows=follows_hash, reply=reply)


def accepted(
    generation: Generation, schema: AnswerSchema[T], messages: Sequence[Message]
) -> tuple[T, str]:
    """The parsed final channel of a finished answer to `messages`, and the text it stands in.

    Of an answer that its limit cut off, the text is what the schema can salvage.

    Raises:
        UnscoredError: truncated, or what the schema finds.
    """
    text = generation.text
    if generation.finish_reason is FinishReason.LENGTH:
        salvaged = schema.salvage(final_text(text, messages))
        if salvaged is None:
            tokens = generation.usage.completion_tokens
            raise UnscoredError(UnscoredReason.TRUNCATED, f"the answer was cut at {tokens} tokens")
        text = salvaged
    return schema.parse(final_text(text, messages)), text


def final_text(text: str, messages: Sequence[Message]) -> str:
    """What a parser may see of an answer: no thinking, and no fence copied from the prompt."""
    return unfenced(split_thinking(text)[1], (message.content for message in messages))
