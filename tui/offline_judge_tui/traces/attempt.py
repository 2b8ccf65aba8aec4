"""One attempt at judging a sample, as nodes: its rounds, searches and calls, and its end."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from offline_judge.domain.ages import earlier
from offline_judge.domain.events import (
    CallFinished,
    EngineStarted,
    RoundFinished,
    SampleFinished,
    SearchFinished,
    UnknownEvent,
    WarningRaised,
)
from offline_judge.domain.numbers import count
from offline_judge_tui.traces.calls import about, call_node
from offline_judge_tui.traces.found import found_evidence, key_of
from offline_judge_tui.traces.model import Evidence, Node, Piece
from offline_judge_tui.traces.verdicts import end_node
from offline_judge_tui.traces.words import masses, one_line

if TYPE_CHECKING:
    from offline_judge.domain.events import AnyEvent
    from offline_judge.domain.evidence import SearchHit

Numbered = tuple[int, "AnyEvent"]
"""An event and its index among those of the sample."""


class AttemptTree:
    """Makes the nodes of one attempt.

    Args:
        number: Which attempt of the sample's it is, from 1; sets its evidence apart.
        events: Those of the attempt, in order, each with its index.
    """

    def __init__(self, number: int, events: Sequence[Numbered]) -> None:
        self._number = number
        self._events = events
        self.evidence: dict[str, Evidence] = found_evidence(number, [e for _, e in events])
        self._names = {one.name: key for key, one in self.evidence.items() if one.name}
        self._rounds: dict[int, Node] = {}
        self._answers: dict[int, set[str]] = {}
        self._top: list[Node] = []

    def nodes(self) -> list[Node]:
        """All of it, in the order it happened."""
        for number, event in self._events:
            self._add(number, event)
        return self._top

    def _add(self, number: int, event: AnyEvent) -> None:
        match event:
            case SearchFinished():
                self._place(event.round).append(self._search(number, event))
            case CallFinished():
                self._answers.setdefault(event.round, set()).add(event.text.strip())
                about_key = self._names.get(about(event), "")
                self._place(event.round).append(call_node(number, event, about_key))
            case RoundFinished():
                self._finish_round(number, event)
            case SampleFinished():
                self._top.append(end_node(number, event, self._names, self.evidence))
            case _:
                self._top.append(self.other(number, event))

    def _place(self, round: int) -> list[Node]:
        """Where nodes of a round belong; what is of no round stands at the top."""
        if not round:
            return self._top
        if round not in self._rounds:
            label = (Piece(f"round {round}", "strong"), Piece(" not finished", "dim"))
            self._rounds[round] = Node("round", label, open=True)
            self._top.append(self._rounds[round])
        return self._rounds[round].children

    def _search(self, number: int, event: SearchFinished) -> Node:
        said = [Piece("search ", "dim"), Piece(f"“{one_line(event.query, 60)}”")]
        if event.offset:
            said.append(Piece(f" from rank {event.offset + 1}", "dim"))
        if event.error:
            said.append(Piece(f" failed: {one_line(event.error)}", "bad"))
        else:
            said.append(Piece(f" {count(len(event.hits), 'hit')}{_origin(event)}", "dim"))
        children = [self._hit(number, event, hit) for hit in event.hits]
        text = f"{event.query}\n\n{event.error}".strip()
        return Node("search", tuple(said), "searched for", text, number, "", children, open=True)

    def _hit(self, number: int, event: SearchFinished, hit: SearchHit) -> Node:
        key = key_of(self._number, hit.passage.id)
        found = self.evidence[key]
        named = found.name if found.round == event.round else ""
        star = Piece("★ " if named and found.cited else "", "cited")
        name = Piece(f"[{named}] " if named else f"{hit.rank}. ", "strong" if named else "dim")
        title = one_line(hit.passage.title, 60)
        said = [star, name, Piece(title, "strong" if named else "")]
        if named and found.relevance is not None:
            said.append(Piece(f" says the answer {found.relevance:.2f}", "dim"))
        said.append(Piece(f" {one_line(hit.passage.text, 80)}", "dim"))
        return Node("evidence", tuple(said), event=number, evidence=key)

    def _finish_round(self, number: int, event: RoundFinished) -> None:
        children = self._place(event.round)
        answers = self._answers.get(event.round, set())
        for name, text in (("summary", event.summary), ("missing", event.missing)):
            if text and text.strip() not in answers:
                label = (Piece(f"{name} ", "dim"), Piece(one_line(text)))
                children.append(Node("text", label, name, text, number))
        if event.fallback:
            told = "the query repeats an earlier one, so the next ranks were taken"
            children.append(Node("event", (Piece(told, "warn"),), event=number))
        if event.stance:
            children.append(_reflection(number, event))
        if event.round in self._rounds:
            self._rounds[event.round].pieces = _round_label(event)

    @staticmethod
    def other(number: int, event: AnyEvent) -> Node:
        """An event that has no place of its own in the tree."""
        match event:
            case WarningRaised():
                label = (Piece("warning ", "warn"), Piece(one_line(event.message)))
                return Node("event", label, "warning", event.message, number)
            case EngineStarted():
                told = f"the engine started again: {event.reason}" if event.restart else "engine up"
                return Node("event", (Piece(one_line(told), "warn"),), "engine", told, number)
            case UnknownEvent() if event.unreadable:
                label = (Piece("left out ", "warn"), Piece(one_line(event.unreadable)))
                return Node("event", label, "as it was recorded", _raw(event), number)
            case UnknownEvent():
                label = (Piece(f"`{event.event}`"), Piece(", which this program knows not", "dim"))
                return Node("event", label, "as it was recorded", _raw(event), number)
        return Node("event", (Piece(event.event, "dim"),), event.event, _raw(event), number)


def _reflection(number: int, event: RoundFinished) -> Node:
    tone = {"supports": "good", "contradicts": "bad"}.get(event.stance, "warn")
    said = [Piece("reflection ", "dim"), Piece(event.stance, tone)]  # type: ignore[arg-type]  # all three are tones
    if event.probability is not None:
        said.append(Piece(f" {event.probability:.2f} of true"))
    if event.stance_masses:
        said.append(Piece(f" ({masses(event.stance_masses)})", "dim"))
    return Node("text", tuple(said), event=number)


def _round_label(event: RoundFinished) -> tuple[Piece, ...]:
    said = [Piece(f"round {event.round}", "strong"), Piece(f" “{one_line(event.query, 60)}”")]
    if event.stance:
        share = "" if event.probability is None else f" {event.probability:.2f}"
        said.append(Piece(f" {event.stance}{share}", "dim"))
    return tuple(said)


def _origin(event: SearchFinished) -> str:
    """Told of a search that was not made, because its answer was known before."""
    if event.reused:
        return ", searched before in this run"
    own = [hit for hit in event.hits if not hit.cached]
    if not own or not all(hit.found_at for hit in own):
        return ""
    when = earlier(min(hit.found_at for hit in own), event.time)
    return f", from the record{f', found {when}' if when else ''}"


def _raw(event: AnyEvent) -> str:
    return json.dumps(event.model_dump(mode="json"), ensure_ascii=False, indent=2)
