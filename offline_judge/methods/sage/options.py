"""Options of SAGE, with the paper's defaults where it states them."""

from __future__ import annotations

from pydantic import Field

from offline_judge.domain.base import Frozen


class SageOptions(Frozen):
    """Options of `sage`.

    Attributes:
        rounds: N, rounds of query, search, summary and reflection (paper: 3).
        results: Results a search (paper: 3, weakly documented).
        evidence: Passages shown to the verdict beside the notes; our choice.
        passage_chars: Characters of a passage a prompt shows at most; our choice.
        rationale: Whether the judge says why.
    """

    rounds: int = Field(default=3, ge=1, le=10)
    results: int = Field(default=3, ge=1, le=10)
    evidence: int = Field(default=1, ge=1, le=9)
    passage_chars: int = Field(default=1200, ge=200, le=8000)
    rationale: bool = True
