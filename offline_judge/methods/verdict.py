"""The step every true-or-false method ends with: read the verdict, then ask why.

The verdict is the label with the larger probability right behind the prompt, before anything is
generated. The rationale is written after it, so it cannot sway it, and ends with the label it
argues for: where that is the other one, it is flagged.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Annotated

from pydantic import Field

from offline_judge.domain.base import Frozen
from offline_judge.domain.message import Label, Labels
from offline_judge.prompting.answers import JsonAnswer
from offline_judge.protocols import AnswerSchema, Judge, Turn, Values

CORRECT = Label(name="true", text="Yes")
INCORRECT = Label(name="false", text="No")
LABELS = (CORRECT, INCORRECT)


class PlainRationale(Frozen):
    """Why, and which verdict that argues for."""

    rationale: str = Field(max_length=240)
    correct: bool


class CitedRationale(PlainRationale):
    """A rationale with the ids of the evidence that says so."""

    cites: tuple[Annotated[str, Field(max_length=8)], ...] = Field(max_length=3)


RATIONALE_TOKENS = 96
_PLAIN: AnswerSchema[PlainRationale] = JsonAnswer(PlainRationale, max_tokens=RATIONALE_TOKENS)
_CITED: AnswerSchema[PlainRationale] = JsonAnswer(CitedRationale, max_tokens=RATIONALE_TOKENS)


@dataclass(frozen=True)
class Verdict:
    """A verdict as it was read, with the rationale and what it cites.

    `probability` is None where the engine named no alternatives.
    """

    correct: bool
    probability: float | None
    outside: float
    rationale: str = ""
    disagrees: bool = False
    citations: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()


async def reach_verdict(judge: Judge, values: Values, *, rationale: bool) -> Verdict:
    """Read template `verdict`, then ask `verdict.rationale`.

    Args:
        judge: Bound to the sample.
        values: For the `verdict` template.
        rationale: Whether to ask why.

    Raises:
        UnscoredError: the verdict cannot be read, or the rationale cannot be had.
    """
    reading = await judge.read("verdict", values, LABELS)
    verdict = verdict_of(reading.labels)
    return await explain(judge, verdict, reading.turn) if rationale else verdict


def verdict_of(labels: Labels) -> Verdict:
    """The label with the larger probability; correct where both have the same."""
    share = labels.share(CORRECT.name)
    return Verdict(
        correct=share >= 0.5,
        probability=None if labels.chosen_only else share,
        outside=labels.outside,
    )


async def explain(
    judge: Judge,
    verdict: Verdict,
    turn: Turn,
    *,
    template: str = "verdict.rationale",
    evidence_ids: Collection[str] = (),
) -> Verdict:
    """Ask why behind the reading, and add what is said.

    Args:
        judge: Bound to the sample.
        verdict: As it was read.
        turn: The reading it comes from.
        template: The turn that asks.
        evidence_ids: Ids that may be cited; a citation of any other is dropped.

    Raises:
        UnscoredError: the rationale cannot be had.
    """
    schema = _CITED if evidence_ids else _PLAIN
    values = {"cite": int(bool(evidence_ids))}
    why = (await judge.ask(template, values, schema, follows=turn)).value
    asked = why.cites if isinstance(why, CitedRationale) else ()
    cites = tuple(dict.fromkeys(cite.strip().strip("[]") for cite in asked))
    return replace(
        verdict,
        rationale=_whole_sentences(why.rationale.strip()),
        disagrees=why.correct != verdict.correct,
        citations=tuple(cite for cite in cites if cite in evidence_ids),
        dropped=tuple(cite for cite in cites if cite not in evidence_ids),
    )


def _whole_sentences(text: str) -> str:
    """Leave out a last sentence that the length limit cut, where another stands before it."""
    if text.endswith((".", "!", "?")) or ". " not in text:
        return text
    return text[: text.rindex(". ") + 1]
