"""How judging a sample ended, as nodes: verdict, rationale and what it cites."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from offline_judge_tui.text import of_true, truth
from offline_judge_tui.traces.model import Evidence, Node, Piece
from offline_judge_tui.traces.words import one_line

if TYPE_CHECKING:
    from offline_judge.domain.events import SampleFinished
    from offline_judge.domain.judgment import Judgment


def end_node(
    number: int, event: SampleFinished, names: Mapping[str, str], evidence: Mapping[str, Evidence]
) -> Node:
    """The verdict, or why there is none.

    Args:
        number: Index of the event.
        event: The sample's last one.
        names: Name in the notes to key.
        evidence: By key.
    """
    judgment = event.judgment
    if judgment is None:
        said = (str(event.outcome), event.reason, event.detail)
        told = ": ".join(dict.fromkeys(part for part in said if part))
        return Node("verdict", (Piece(one_line(told), "warn"),), "no verdict", told, number)
    children = list(_children(number, judgment, names, evidence))
    label = (
        Piece("verdict ", "dim"),
        Piece(truth(judgment.verdict), "good" if judgment.verdict else "bad"),
        Piece(of_true(judgment.probability), "strong"),
        *_beside(judgment),
    )
    return Node("verdict", label, "rationale", judgment.rationale, number, "", children, open=True)


def _beside(judgment: Judgment) -> Iterator[Piece]:
    if judgment.probability is not None:
        yield Piece(f", {judgment.outside:.2f} on neither label", "dim")


def _children(
    number: int, judgment: Judgment, names: Mapping[str, str], evidence: Mapping[str, Evidence]
) -> Iterator[Node]:
    if judgment.rationale:
        label = (Piece("because ", "dim"), Piece(one_line(judgment.rationale)))
        yield Node("text", label, "rationale", judgment.rationale, number)
    if judgment.rationale_disagrees:
        yield Node("event", (Piece("the rationale argues for the other label", "warn"),))
    for name in judgment.citations:
        key = names.get(name, "")
        title = one_line(evidence[key].passage.title) if key else "not in the trace"
        said = (Piece("★ cites ", "cited"), Piece(f"[{name}] ", "strong"), Piece(title))
        yield Node("citation", said, event=number, evidence=key)
    if judgment.dropped_citations:
        dropped = ", ".join(judgment.dropped_citations)
        told = f"cited but not in the evidence, dropped: {one_line(dropped)}"
        yield Node("event", (Piece(told, "warn"),))
    if judgment.calibrated_verdict is not None:
        share = judgment.calibrated_probability
        told = "" if share is None else f" {share:.2f} of true"
        label = (Piece("calibrated ", "dim"), Piece(f"{truth(judgment.calibrated_verdict)}{told}"))
        yield Node("text", label)
    state = judgment.evidence_state.value.replace("_", " ")
    yield Node("text", (Piece("evidence ", "dim"), Piece(state)))
