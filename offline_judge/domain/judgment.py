"""What comes out: outcomes, verdicts with their rationale, and why a sample went unscored."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from offline_judge.domain.base import Frozen
from offline_judge.domain.evidence import EvidenceState


class Outcome(StrEnum):
    """How judging a sample ended."""

    SCORED = "scored"
    UNSCORED = "unscored"
    ERROR = "error"
    CANCELLED = "cancelled"


class UnscoredReason(StrEnum):
    """Why a sample could not be judged. Never a verdict, never a zero."""

    TRUNCATED = "truncated"
    OVERFLOW = "overflow"
    MALFORMED = "malformed"
    OFF_MENU = "off-menu"
    EMPTY = "empty"
    REFUSED = "refused"
    BACKEND = "backend"
    SEARCH = "search"
    NO_REFERENCE = "no-reference"


class Judgment(Frozen):
    """A judge's verdict on one sample.

    Attributes:
        verdict: True where the response is judged correct.
        probability: Probability of `True` among the two labels, in [0, 1]; None where the engine
            gives no label probabilities, and the verdict is the judge's answer.
        outside: Mass the judge put on neither label, in [0, 1].
        rationale: Why, written after the verdict was read; empty where none was asked for.
        rationale_disagrees: The rationale ends by arguing for the other label.
        citations: Ids of evidence the rationale cites, all of them in the notes.
        dropped_citations: Cited ids that are not in the notes.
        evidence_state: What the search came to.
        searches: Searches made or reused for this sample.
        fallback_rounds: Rounds whose query repeated an earlier one, so that the next ranks were
            taken.
        distinct_queries: Distinct normalised queries that were searched with.
        calibrated_verdict: As the run's calibration reads it; None in a run without one.
        calibrated_probability: Likewise, in [0, 1].
    """

    verdict: bool
    probability: float | None = Field(ge=0, le=1)
    outside: float = Field(default=0.0, ge=0, le=1)
    rationale: str = ""
    rationale_disagrees: bool = False
    citations: tuple[str, ...] = ()
    dropped_citations: tuple[str, ...] = ()
    evidence_state: EvidenceState = EvidenceState.NOT_SEARCHED
    searches: int = 0
    fallback_rounds: int = 0
    distinct_queries: int = 0
    calibrated_verdict: bool | None = None
    calibrated_probability: float | None = Field(default=None, ge=0, le=1)
