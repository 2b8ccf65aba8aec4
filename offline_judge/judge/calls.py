"""Owns one prompt on its way to the engine: its identity, its record, its cache key."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from offline_judge.domain.base import content_hash
from offline_judge.domain.events import CallFinished, WarningRaised
from offline_judge.domain.message import Generation, Label, Labels, Message, Prompt, Usage
from offline_judge.prompting.fence import neutralise
from offline_judge.prompting.library import Rendered
from offline_judge.prompting.thinking import split_thinking
from offline_judge.protocols import TraceSink, Turn

# Part of every key: raise it when retries, windows or readings come to other answers than before.
JUDGE_VERSION = 1

_NOTHING = Usage(prompt_tokens=0)


@dataclass(frozen=True)
class Call:
    """A rendered prompt as the engine will read it.

    Attributes:
        stage: The template's name without its namespace.
        round: The method's round.
        rendered: Where the prompt comes from.
        prompt: The engine's view of it.
        follows: Prompt hash of the call it continues, or nothing.
        reply: What was answered to that one, as this prompt quotes it.
        place: The slot it shall run on, by the name the method gave it; the stage if empty.
    """

    stage: str
    round: int
    rendered: Rendered
    prompt: Prompt
    follows: str = ""
    reply: str = ""
    place: str = ""

    @property
    def prompt_hash(self) -> str:
        """SHA-256 over the conversation."""
        return hash_messages(self.rendered.messages)

    def turn(self, answer: str) -> Turn:
        """The conversation with this prompt answered so."""
        reply = Message(role="assistant", content=spoken(answer))
        return Turn((*self.rendered.messages, reply), self.prompt_hash, self.place)


@dataclass(frozen=True)
class Ingredients:
    """What, beside the prompt itself, an answer depends on."""

    model_sha256: str
    engine: str
    engine_version: str

    def key(self, call: Call, asked: dict[str, Any]) -> str:
        """Cache key of a request; the same in every process.

        Args:
            call: The prompt. Token ids identify it best, then its text, then its turns.
            asked: How it is answered: sampling, schema and variant, or the labels.
        """
        prompt = call.prompt
        turns = [[message.role, message.content] for message in prompt.messages]
        return content_hash(
            {
                "version": JUDGE_VERSION,
                "weights": self.model_sha256,
                "engine": [self.engine, self.engine_version],
                "template": call.rendered.template_hash,
                "prompt": list(prompt.token_ids) or prompt.text or turns,
                "asked": asked,
            }
        )


class Recorder:
    """Writes one `CallFinished` for each request of a sample, or each answer found again.

    `attempt` counts the events of one stage and round, so that (sample, stage, round, attempt)
    names one of them. A corrective attempt is recorded as the later turn it is: it follows the
    first prompt, and what it answers is the answer to that prompt.
    Reused answers carry no usage: sums over events tell what the engine did.
    """

    def __init__(self, sample_id: str, trace: TraceSink) -> None:
        self._sample_id = sample_id
        self._trace = trace
        self._counts: Counter[tuple[str, int]] = Counter()

    def generated(self, call: Call, generation: Generation, seed: int, problem: str = "") -> None:
        """An answer came; `problem` says why it was not accepted."""
        self._emit(
            call,
            text=generation.text,
            finish_reason=generation.finish_reason,
            seed=seed,
            usage=generation.usage,
            timings=generation.timings,
            problem=problem,
        )

    def read(self, call: Call, labels: Labels, problem: str = "", *, reused: bool = False) -> None:
        """A reading of labels came or was found again."""
        self._emit(
            call,
            masses=labels.masses,
            outside=labels.outside,
            usage=labels.usage,
            timings=labels.timings,
            problem=problem,
            reused=reused,
        )

    def reused(self, call: Call, text: str, seed: int) -> None:
        """An accepted answer was found again."""
        self._emit(call, text=text, finish_reason="stop", seed=seed, usage=_NOTHING, reused=True)

    def failed(self, call: Call, problem: str) -> None:
        """A request brought no answer."""
        self._emit(call, usage=_NOTHING, problem=problem)

    def warn(self, message: str) -> None:
        """Something a reader of the results must know."""
        self._trace.emit(WarningRaised(sample_id=self._sample_id, message=message))

    def _emit(self, call: Call, **outcome: Any) -> None:
        place = (call.stage, call.round)
        self._trace.emit(
            CallFinished(
                sample_id=self._sample_id,
                stage=call.stage,
                round=call.round,
                attempt=self._counts[place],
                template=call.rendered.template,
                template_hash=call.rendered.template_hash,
                values=call.rendered.values_record,
                follows=call.follows,
                reply=call.reply,
                prompt_hash=call.prompt_hash,
                **outcome,
            )
        )
        self._counts[place] += 1


def hash_messages(messages: Sequence[Message]) -> str:
    """SHA-256 over the roles and contents of a conversation."""
    return content_hash([[message.role, message.content] for message in messages])


def spoken(text: str) -> str:
    """An answer as a later prompt quotes it: its final channel, cleaned, without outer blanks."""
    return neutralise(split_thinking(text)[1]).strip()


def stored_labels(stored: Any, labels: Sequence[Label]) -> Labels | None:
    """A kept reading with no usage of its own; None for anything else."""
    try:
        found = Labels.model_validate({**(stored or {}), "usage": _NOTHING})
    except (TypeError, ValidationError):
        return None
    return found if found.masses.keys() == {label.name for label in labels} else None
