"""Which passages an attempt found, which got into the notes, and what the judge saw of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from offline_judge.domain.events import CallFinished, RoundFinished, SampleFinished, SearchFinished
from offline_judge_tui.traces.model import Evidence

if TYPE_CHECKING:
    from offline_judge.domain.events import AnyEvent
    from offline_judge.domain.evidence import Passage, SearchHit


def key_of(attempt: int, passage_id: str) -> str:
    """Names a passage in a trace; each attempt searched for itself."""
    return f"{attempt}:{passage_id}"


def found_evidence(attempt: int, events: Sequence[AnyEvent]) -> dict[str, Evidence]:
    """All passages of an attempt by key, in the order they were found.

    A passage that several searches found is told as the round took it that put it into the notes;
    else as it was found first.
    """
    notes = {
        (event.round, passage): (name, event.relevance.get(name))
        for event in events
        if isinstance(event, RoundFinished)
        for name, passage in event.evidence.items()
    }
    cited = _cited(events)
    found: dict[str, Evidence] = {}
    for event in events:
        if not isinstance(event, SearchFinished):
            continue
        for hit in event.hits:
            key = key_of(attempt, hit.passage.id)
            note = notes.get((event.round, hit.passage.id))
            if key in found and (note is None or found[key].name):
                continue
            one = _evidence(key, event, hit)
            if note is not None:
                one = replace(one, name=note[0], relevance=note[1], cited=note[0] in cited)
            found[key] = one
    shown = _shown(events)
    return {
        key: replace(one, shown=_length(one.passage, shown[one.name])) if one.name in shown else one
        for key, one in found.items()
    }


def fenced_evidence(values: Mapping[str, Any]) -> str:
    """The passage that a prompt shows, `[E1] ...`, by what filled it; empty where it shows none."""
    for value in values.values():
        if isinstance(value, dict) and value.get("untrusted") == "evidence":
            return str(value.get("text", ""))
    return ""


def name_of(shown: str) -> str:
    """`E1` of a passage shown as `[E1] ...`; empty where it has no name."""
    name, found, _ = shown[1:].partition("] ")
    return name if found and shown.startswith("[") and len(name) < len("[E9999]") else ""


def _cited(events: Sequence[AnyEvent]) -> frozenset[str]:
    ends = [event.judgment for event in events if isinstance(event, SampleFinished)]
    return frozenset(ends[-1].citations) if ends and ends[-1] is not None else frozenset()


def _evidence(key: str, event: SearchFinished, hit: SearchHit) -> Evidence:
    return Evidence(
        key=key,
        name="",
        passage=hit.passage,
        round=event.round,
        rank=hit.rank,
        score=hit.score,
        query=event.query,
        provider=event.provider,
        searched=event.time,
        found_at=hit.found_at,
        cached=hit.cached,
        reused=event.reused,
    )


def _shown(events: Sequence[AnyEvent]) -> dict[str, str]:
    """Name in the notes to what a prompt showed of the passage."""
    shown: dict[str, str] = {}
    for event in events:
        if isinstance(event, CallFinished):
            text = fenced_evidence(event.values)
            if name := name_of(text):
                shown.setdefault(name, text)
    return shown


def _length(passage: Passage, shown: str) -> int | None:
    """Characters of the passage that a prompt showed; None where it showed it otherwise."""
    body = shown.partition("] ")[2].removeprefix(f"{passage.title}: " if passage.title else "")
    return len(body) if passage.text.startswith(body) else None
