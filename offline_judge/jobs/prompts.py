"""Prompts as they were sent, made again from what a trace keeps of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from offline_judge.domain.events import AnyEvent, CallFinished
from offline_judge.domain.message import Message, SentPrompt
from offline_judge.errors import StorageError, TemplateError, TraceError, UnscoredError
from offline_judge.judge.calls import hash_messages, spoken
from offline_judge.prompting.library import rerender
from offline_judge.prompting.thinking import split_thinking
from offline_judge.runs.store import RunDirectory


def sent_prompt(directory: RunDirectory, events: Sequence[AnyEvent], number: int) -> SentPrompt:
    """The prompt of a call, checked against the hash that was recorded of it.

    Args:
        directory: The run.
        events: Of one sample, large texts put back.
        number: Index in `events` of a `CallFinished`.

    Raises:
        TraceError: the trace does not hold all of it, or holds another one.
        StorageError: the source of a template is missing.
    """
    call = events[number]
    if not isinstance(call, CallFinished):
        raise TraceError(f"Event {number} of the sample is no call.", where=directory.run_id)
    earlier = {
        event.prompt_hash: event
        for event in events[: number + 1]
        if isinstance(event, CallFinished)
    }
    try:
        thinking, answer = split_thinking(call.text)
    except UnscoredError:
        thinking, answer = call.text, ""  # it was cut off while it thought
    messages = _messages(directory, call, earlier)
    return SentPrompt(messages=messages, thinking=thinking, answer=answer)


def _messages(
    directory: RunDirectory, call: CallFinished, earlier: Mapping[str, CallFinished]
) -> tuple[Message, ...]:
    follows: tuple[Message, ...] | None = None
    if call.follows:
        before = earlier.get(call.follows)
        if before is None or before.prompt_hash == call.prompt_hash:
            raise TraceError(
                f"The prompt that this one follows is not in the trace: {call.follows[:12]}.",
                where=directory.run_id,
            )
        # Traces of older programs do not say what was answered; where it was read, nobody knows.
        reply = call.reply or spoken(before.text)
        turn = Message(role="assistant", content=reply)
        follows = (*_messages(directory, before, earlier), turn)
    try:
        messages = rerender(directory.blob(call.template_hash), call.values, follows)
    except TemplateError as error:
        raise StorageError(f"A prompt cannot be made again: {error}") from error
    if hash_messages(messages) != call.prompt_hash:
        raise TraceError(
            "The trace does not hold this prompt as it was sent.",
            where=f"{directory.run_id}, {call.template}",
            remedy="Runs of this version keep all of it; an older one did not keep every reply.",
        )
    return messages
