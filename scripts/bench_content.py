"""Which texts a sample's prompts had to bring to the judge, each counted once."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from offline_judge.domain.events import AnyEvent, CallFinished

Piece = tuple[str, str]
_OF_A_QUESTION = ("question", "evidence")
# How a prompt sets one passage apart from the next: a line that begins with its id.
_PASSAGE_ID = re.compile(r"^\[E\d+\] ", re.MULTILINE)


def read_anew(events: Sequence[AnyEvent]) -> int:
    """Prompt tokens the engine read for one sample, without what it had cached."""
    return sum(call.usage.read_anew for call in _calls(events) if not call.reused)


def content(events: Sequence[AnyEvent], shared: set[Piece] | None = None) -> list[str]:
    """Question, response, results as shown and outputs of one sample, each once.

    What a reused call brought was read for an earlier sample and is not counted again.

    Args:
        events: Of one sample.
        shared: Questions and results of earlier samples of the same question, which are not
            counted again either; those of this sample are added.
    """
    before, own = dict[Piece, None](), dict[Piece, None]()
    for call in _calls(events):
        (before if call.reused else own).update(dict.fromkeys(_pieces(call)))
    fresh = [piece for piece in own if piece not in before and piece not in (shared or ())]
    if shared is not None:
        shared.update(piece for piece in own if piece[0] in _OF_A_QUESTION)
    return [text for _, text in fresh]


def _calls(events: Sequence[AnyEvent]) -> Iterator[CallFinished]:
    return (event for event in events if isinstance(event, CallFinished))


def _pieces(call: CallFinished) -> Iterator[Piece]:
    found = [("question", str(call.values.get("question", ""))), ("output", call.text)]
    for value in call.values.values():
        found.extend(_untrusted(value))
    yield from ((kind, text.strip()) for kind, text in found if text.strip())


def _untrusted(value: Any) -> Iterator[Piece]:
    """Texts from outside in a record of values: the response, and results as they were shown."""
    if isinstance(value, list | tuple):
        for item in value:
            yield from _untrusted(item)
    elif isinstance(value, dict) and "untrusted" in value:
        for text in _PASSAGE_ID.split(str(value["text"])):
            yield str(value["untrusted"]), text
