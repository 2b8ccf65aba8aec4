"""Requests to the judge as nodes: what was asked, what came, and what it cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from offline_judge_tui.traces.found import fenced_evidence, name_of
from offline_judge_tui.traces.model import Node, Piece
from offline_judge_tui.traces.words import masses, one_line

if TYPE_CHECKING:
    from offline_judge.domain.events import CallFinished


def about(event: CallFinished) -> str:
    """Name in the notes of the passage that the prompt shows; empty for none."""
    return name_of(fenced_evidence(event.values))


def call_node(number: int, event: CallFinished, evidence: str) -> Node:
    """A call; its prompt is made again when it is looked at."""
    name = about(event)
    said = [Piece(f"{event.stage}{f' [{name}]' if name else ''} ", "dim")]
    if event.problem:
        said.append(Piece(f"not accepted: {one_line(event.problem)}", "warn"))
    elif event.masses is not None:
        best = max(event.masses, key=lambda label: (event.masses or {})[label], default="-")
        said.append(Piece(f"{best} {event.masses.get(best, 0.0):.2f}"))
    else:
        said.append(Piece(f"“{one_line(event.text, 80)}”"))
    said.append(Piece(f" {cost(event)}", "dim"))
    return Node("call", tuple(said), event.template, event.text, number, evidence)


def cost(event: CallFinished) -> str:
    """Tokens and seconds; of an answer from the cache, only that."""
    if event.reused:
        return "from the cache"
    usage, timings = event.usage, event.timings
    seconds = timings.prompt_s + timings.generate_s
    written = f", {usage.completion_tokens:,} written" if usage.completion_tokens else ""
    return (
        f"{usage.prompt_tokens:,} tokens, {usage.read_anew:,} read anew{written}, {seconds:.1f} s"
    )


def facts(event: CallFinished) -> list[tuple[str, str]]:
    """What there is to know of a call beside its prompt and answer, by name."""
    found = [
        ("template", f"{event.template} {event.template_hash[:12]}"),
        ("prompt", event.prompt_hash[:12]),
        ("cost", cost(event)),
        ("seed", "" if event.masses is not None else str(event.seed)),
        ("ended by", str(event.finish_reason or "")),
        ("attempt", str(event.attempt + 1) if event.attempt else ""),
        ("not accepted", event.problem),
    ]
    if event.masses is not None:
        outside = {} if event.outside is None else {"neither": event.outside}
        found.append(("read", masses({**event.masses, **outside})))
    return [(name, value) for name, value in found if value]
