"""The step every true-or-false method ends with: read the verdict, then ask why.

The verdict is the label with the larger probability right behind the prompt, before anything is
generated. The rationale is written after it, so it cannot sway it; the judge is then asked once
more, and a rationale that leads it to the other label is flagged.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from offline_judge.domain.base import Frozen
from offline_judge.domain.message import Label
from offline_judge.prompting.answers import JsonAnswer
from offline_judge.protocols import Judge, Turn, Values

CORRECT = Label(name="true", text="Yes")
INCORRECT = Label(name="false", text="No")
LABELS = (CORRECT, INCORRECT)


class PlainRationale(Frozen):
    """Why, without evidence to cite."""

    rationale: str = Field(max_length=240)


class CitedRationale(Frozen):
    """Why, and the ids of the evidence that says so."""

    rationale: str = Field(max_length=240)
    cites: tuple[Annotated[str, Field(max_length=8)], ...] = Field(max_length=3)


RATIONALE_TOKENS = 96
_PLAIN = JsonAnswer(PlainRationale, max_tokens=RATIONALE_TOKENS)
_CITED = JsonAnswer(CitedRationale, max_tokens=RATIONALE_TOKENS)


@dataclass(frozen=True)
class Verdict:
    """A verdict as it was read, with the rationale and what it cites."""

    correct: bool
    probability: float
    outside: float
    rationale: str = ""
    disagrees: bool = False
    citations: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()


async def reach_verdict(
    judge: Judge, values: Values, *, rationale: bool, evidence_ids: Collection[str] = ()
) -> Verdict:
    """Read template `verdict`, then ask `verdict.rationale` and read `verdict.check`.

    Args:
        judge: Bound to the sample.
        values: For the `verdict` template.
        rationale: Whether to ask why.
        evidence_ids: Ids that may be cited; a citation of any other is dropped.

    Raises:
        UnscoredError: the verdict cannot be read, or the rationale cannot be had.
    """
    reading = await judge.read("verdict", values, LABELS)
    probability = reading.labels.share(CORRECT.name)
    verdict = Verdict(
        correct=probability >= 0.5, probability=probability, outside=reading.labels.outside
    )
    if not rationale:
        return verdict
    return await _explain(judge, verdict, reading.turn, evidence_ids)


async def _explain(
    judge: Judge, verdict: Verdict, turn: Turn, evidence_ids: Collection[str]
) -> Verdict:
    if evidence_ids:
        cited = await judge.ask("verdict.rationale", {"cite": 1}, _CITED, follows=turn)
        why, asked, after = cited.value.rationale, cited.value.cites, cited.turn
    else:
        plain = await judge.ask("verdict.rationale", {"cite": 0}, _PLAIN, follows=turn)
        why, asked, after = plain.value.rationale, (), plain.turn
    check = await judge.read("verdict.check", {}, LABELS, follows=after, minimum_inside=0.0)
    cites = tuple(dict.fromkeys(cite.strip().strip("[]") for cite in asked))
    return Verdict(
        correct=verdict.correct,
        probability=verdict.probability,
        outside=verdict.outside,
        rationale=why.strip(),
        disagrees=check.labels.inside > 0
        and (check.labels.best() == CORRECT.name) != verdict.correct,
        citations=tuple(cite for cite in cites if cite in evidence_ids),
        dropped=tuple(cite for cite in cites if cite not in evidence_ids),
    )
