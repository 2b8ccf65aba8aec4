"""Samples of a run and lines of its log, as screens page through them. Standard library only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

UNFINISHED = "unfinished"
"""Stands for the outcome of a sample that was taken up and has none yet."""


@dataclass(frozen=True)
class IndexRow:
    """A sample as its last finished attempt left it.

    Attributes:
        sample_id: The sample's id.
        question: The beginning of it.
        label: What people said.
        outcome: How judging ended, or `unfinished`.
        reason: Why it is not scored.
        verdict: Where it is scored, like the probability.
        probability: Of `true`, in [0, 1].
        seconds: That the attempt took.
        time: When it ended, UTC; empty for an unfinished one.
    """

    sample_id: str
    question: str
    label: bool | None
    outcome: str
    reason: str
    verdict: bool | None
    probability: float | None
    seconds: float
    time: str


@dataclass(frozen=True)
class RowQuery:
    """Which samples, in which order.

    Attributes:
        offset: Rows to pass over.
        limit: Rows at most.
        order: As they were taken up, or by a column.
        reverse: From the last to the first.
        outcome: Only samples with this one.
        text: Only samples whose id, or the beginning of whose question, has this text in it,
            whatever the case.
        disagree: Only samples whose verdict is not their label.
    """

    offset: int = 0
    limit: int = 100
    order: Literal["taken", "id", "probability", "outcome", "seconds"] = "taken"
    reverse: bool = False
    outcome: str = ""
    text: str = ""
    disagree: bool = False


LogKind = Literal["run", "engine", "warning", "failure"]


@dataclass(frozen=True)
class LogLine:
    """Something that a reader of a run must know: of the run, or of one of its samples.

    Attributes:
        time: UTC, ISO 8601.
        kind: A start or end of the run, of an engine, a warning, or a sample without a verdict.
        sample_id: Empty for the run as a whole.
        text: What it was, for people.
    """

    time: str
    kind: LogKind
    sample_id: str
    text: str
