"""Events of one sample made into a tree: its texts, then each attempt at judging it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from offline_judge.domain.events import (
    ResponseWritten,
    SampleFinished,
    SampleStarted,
)
from offline_judge_tui.text import truth
from offline_judge_tui.traces.attempt import AttemptTree, Numbered
from offline_judge_tui.traces.model import Evidence, Node, Piece, Trace
from offline_judge_tui.traces.words import one_line

if TYPE_CHECKING:
    from offline_judge.domain.events import AnyEvent
    from offline_judge.domain.sample import Sample


def build_trace(events: Sequence[AnyEvent]) -> Trace:
    """The trace of a sample whose events these are, in order.

    The last attempt stands open; earlier ones, which an interruption or an error ended, are
    folded before it.
    """
    before, attempts = _split(events)
    sample = _sample(events)
    root = Node("text", (), children=_sample_nodes(sample) if sample is not None else [])
    root.children += [_before_node(event, n) for n, event in before]
    evidence: dict[str, Evidence] = {}
    for number, attempt in enumerate(attempts, 1):
        tree = AttemptTree(number, attempt)
        nodes = tree.nodes()
        evidence |= tree.evidence
        if number < len(attempts):
            root.children.append(_folded(number, len(attempts), attempt, nodes))
        else:
            root.children += nodes
    return Trace(tuple(events), root, evidence, sample.response if sample is not None else "")


def _split(events: Sequence[AnyEvent]) -> tuple[list[Numbered], list[list[Numbered]]]:
    """What came before the first attempt, and each attempt."""
    before: list[Numbered] = []
    attempts: list[list[Numbered]] = []
    for number, event in enumerate(events):
        if isinstance(event, SampleStarted):
            attempts.append([])
        elif attempts:
            attempts[-1].append((number, event))
        else:
            before.append((number, event))
    return before, attempts


def _sample(events: Sequence[AnyEvent]) -> Sample | None:
    started = [event.sample for event in events if isinstance(event, SampleStarted)]
    return started[-1] if started else None


def _sample_nodes(sample: Sample) -> list[Node]:
    nodes = [_text("question", sample.question), _text("response", sample.response)]
    if sample.reference:
        nodes.append(_text("reference", "\n".join(sample.reference)))
    if sample.label is not None:
        nodes.append(Node("text", (Piece("label ", "dim"), Piece(truth(sample.label), "strong"))))
    if sample.metadata:
        listed = json.dumps(sample.metadata, ensure_ascii=False, indent=2)
        nodes.append(_text("other columns", listed))
    return nodes


def _text(name: str, text: str) -> Node:
    return Node("text", (Piece(f"{name} ", "dim"), Piece(one_line(text))), title=name, text=text)


def _before_node(event: AnyEvent, number: int) -> Node:
    if not isinstance(event, ResponseWritten):
        return AttemptTree.other(number, event)
    if not event.response:
        told = f"{event.candidate} wrote no response: {event.reason}: {event.detail}"
        return Node("event", (Piece(one_line(told), "warn"),), "no response", told, number)
    cut = " and was cut by its output limit" if event.finish_reason == "length" else ""
    label = (Piece("response written by ", "dim"), Piece(f"{event.candidate}{cut}"))
    return Node("event", label, "response as it was written", event.response, number)


def _folded(number: int, of: int, attempt: Sequence[Numbered], nodes: list[Node]) -> Node:
    ends = [event for _, event in attempt if isinstance(event, SampleFinished)]
    end = f"{ends[-1].outcome}" if ends else "broken off"
    return Node("attempt", (Piece(f"attempt {number} of {of}: {end}", "dim"),), children=nodes)
