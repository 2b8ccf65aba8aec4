"""Which texts a sample's prompts had to bring to the judge, each counted once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from offline_judge.domain.events import AnyEvent, CallFinished


def read_anew(events: Sequence[AnyEvent]) -> int:
    """Prompt tokens the engine read for one sample, without what it had cached."""
    return sum(call.usage.read_anew for call in _calls(events) if not call.reused)


def content(events: Sequence[AnyEvent]) -> list[str]:
    """Question, response, results as shown and outputs of one sample, each once.

    What a reused call brought was read for an earlier sample and is not counted again.
    """
    before, own = dict[str, None](), dict[str, None]()
    for call in _calls(events):
        (before if call.reused else own).update(dict.fromkeys(_texts(call)))
    fresh = [text for text in own if text not in before]
    return [text for text in fresh if not _inside_another(text, fresh)]


def _calls(events: Sequence[AnyEvent]) -> Iterator[CallFinished]:
    return (event for event in events if isinstance(event, CallFinished))


def _texts(call: CallFinished) -> Iterator[str]:
    values = [call.values.get("question", ""), *_untrusted(list(call.values.values()))]
    yield from (text.strip() for text in (*values, call.text) if text.strip())


def _untrusted(value: Any) -> Iterator[str]:
    """Texts from outside in a record of values: the response, and results as they were shown."""
    if isinstance(value, list | tuple):
        for item in value:
            yield from _untrusted(item)
    elif isinstance(value, dict) and "untrusted" in value:
        yield str(value["text"])


def _inside_another(text: str, texts: Sequence[str]) -> bool:
    """Is it a part of another text, such as a summary of the answer that it was parsed from?"""
    return any(text != other and text in other for other in texts)
