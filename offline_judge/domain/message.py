"""What goes into an engine and what comes back: prompts, sampling, generations, labels."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Literal

from pydantic import Field

from offline_judge.domain.base import Frozen

Role = Literal["system", "user", "assistant"]
ThinkingMode = Literal["off", "off-constrained", "on", "on-constrained"]


class Message(Frozen):
    """One turn of a chat."""

    role: Role
    content: str


class Prompt(Frozen):
    """A conversation as one engine will read it.

    Attributes:
        messages: The turns it was made from.
        text: The chat template's rendering; empty where the engine does not tell.
        token_ids: The rendering's token ids; empty where the engine does not tell.
        tokens: Number of tokens, the one the window is checked against; where the engine does not
            tell, a number that it will hardly exceed.
        thinking: The model is let think before it answers.
    """

    messages: tuple[Message, ...]
    text: str = ""
    token_ids: tuple[int, ...] = ()
    tokens: int
    thinking: bool = False


class SentPrompt(Frozen):
    """A request to the judge, word by word.

    Attributes:
        messages: The conversation as it was sent.
        thinking: What the judge thought before it answered.
        answer: What it answered, thinking apart, as the engine gave it.
    """

    messages: tuple[Message, ...]
    thinking: str
    answer: str


class Sampling(Frozen):
    """How tokens are drawn. `max_tokens` counts output tokens; `stop` ends before the match."""

    temperature: float = 0.0
    top_p: float = 1.0
    seed: int = 0
    max_tokens: int = Field(gt=0)
    stop: tuple[str, ...] = ()


class Constraint(Frozen):
    """A JSON Schema the output must match, in the subset that `prompting.schema` accepts."""

    kind: Literal["json_schema"] = "json_schema"
    json_schema: dict[str, Any]


class FinishReason(StrEnum):
    """Why a generation ended. `LENGTH` is the output cap; the window is checked before sending."""

    STOP = "stop"
    LENGTH = "length"
    CANCELLED = "cancelled"


class Usage(Frozen):
    """Token counts of one request; `cached_tokens` of the prompt were not read anew."""

    prompt_tokens: int
    cached_tokens: int = 0
    completion_tokens: int = 0

    @property
    def read_anew(self) -> int:
        """Prompt tokens the engine had to compute for this request."""
        return self.prompt_tokens - self.cached_tokens


class Timings(Frozen):
    """Seconds the engine spent on one request, queueing excluded."""

    prompt_s: float = 0.0
    generate_s: float = 0.0


class Delta(Frozen):
    """A piece of a stream: new text, or progress in reading the prompt (tokens read so far)."""

    text: str = ""
    prompt_read: int | None = None


class Generation(Frozen):
    """One finished answer of an engine; the last thing `Backend.generate` yields."""

    text: str
    token_ids: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()
    finish_reason: FinishReason
    usage: Usage
    timings: Timings = Timings()


class Label(Frozen):
    """A label as a judge reads it: its name in results and the text a model answers with."""

    name: str
    text: str

    def variants(self) -> tuple[str, ...]:
        """Spellings whose mass is summed: as is, lower, upper, capital, each with a space."""
        forms = (self.text, self.text.lower(), self.text.upper(), self.text.capitalize())
        bare = tuple(dict.fromkeys(forms))
        return bare + tuple(f" {form}" for form in bare)


class Labels(Frozen):
    """Label masses at the first answer token, before any sampling or grammar.

    Attributes:
        masses: Probability of each label's name, variants summed; sums to at most 1.
        outside: Mass of everything else, so masses and outside sum to 1.
        unseen: The part of `outside` the server did not itemise (beyond its top alternatives).
        chosen_only: The engine names no alternatives: the judge answered with one of the labels,
            which has all mass. These are no probabilities.
    """

    masses: dict[str, float]
    outside: float
    unseen: float = 0.0
    chosen_only: bool = False
    usage: Usage
    timings: Timings = Timings()

    @property
    def inside(self) -> float:
        """Total mass on the labels."""
        return sum(self.masses.values())

    def share(self, name: str) -> float:
        """Mass of one label as a share of all labels' mass; 0 where no label has any."""
        return self.masses[name] / self.inside if self.inside > 0 else 0.0

    def best(self) -> str:
        """The label with the largest mass, the first named one in a tie."""
        return max(self.masses, key=lambda name: self.masses[name])


class Capabilities(Frozen):
    """What an engine does, as it runs now.

    Attributes:
        window: Tokens one slot holds, prompt and output together, as read back from the engine.
        slots: Requests it works on at once.
        token_level: Prompts are sent as token ids, and ids come back.
        label_probabilities: First-token alternatives are given before sampling and grammar.
        constraints: Constraint kinds it obeys.
        seed: The same seed gives the same draw.
        reports_cached_tokens: Usage tells how much of a prompt was reused.
        thinking_switch: Thinking can be turned on and off.
        thinking_modes: Combinations of thinking and constraint that were seen to work; those with
            thinking are tried only where it is asked for.
    """

    window: int
    slots: int
    token_level: bool
    label_probabilities: bool
    constraints: tuple[str, ...] = ()
    seed: bool = True
    reports_cached_tokens: bool = True
    thinking_switch: bool = False
    thinking_modes: tuple[ThinkingMode, ...] = ()


def merge_same_role(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Join neighbouring turns of one role, for templates that demand alternation."""
    merged: list[Message] = []
    for message in messages:
        if merged and merged[-1].role == message.role:
            joined = f"{merged[-1].content}\n\n{message.content}"
            merged[-1] = Message(role=message.role, content=joined)
        else:
            merged.append(message)
    return tuple(merged)


def without_system(messages: Sequence[Message]) -> tuple[Message, ...]:
    """For templates without a system role: its text leads the first user turn."""
    as_user = [
        Message(role="user", content=turn.content) if turn.role == "system" else turn
        for turn in messages
    ]
    return merge_same_role(as_user)
