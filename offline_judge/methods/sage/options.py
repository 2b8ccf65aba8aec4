"""Options of SAGE, with the paper's defaults where it states them."""

from __future__ import annotations

from pydantic import Field, model_validator

from offline_judge.domain.base import Frozen
from offline_judge.methods.options import RATIONALE


class SageOptions(Frozen):
    """Options of `sage`; each says in its description what it is for."""

    rounds: int = Field(
        default=3,
        ge=1,
        le=10,
        description="N, rounds of query, search, summary and reflection (paper: 3).",
    )
    results: int = Field(
        default=3,
        ge=1,
        le=10,
        description="New passages a round takes up (paper: 3, weakly documented).",
    )
    passage_chars: int = Field(
        default=1200,
        ge=200,
        le=8000,
        description="Characters of a passage a prompt shows at most; our choice.",
    )
    refine: bool = Field(
        default=True,
        description="Write queries; off searches the question itself in every round (the paper's "
        'ablation "no refinement").',
    )
    rewrite_first: bool = Field(
        default=False,
        description="Write the first query too, as the paper does. Off, the first round searches "
        "the question itself and queries are written from the second on; our choice.",
    )
    sufficiency: bool = Field(
        default=False,
        description="Stop when a round's evidence settles the response (off, as in the paper).",
    )
    single_pass: bool = Field(
        default=False,
        description="One round: a search with the question itself, and the response read once "
        "against the likely ones of its passages. No queries, summaries or notes of what is "
        "missing. A control, not a part of the paper.",
    )
    rationale: bool = Field(default=True, description=RATIONALE)

    @model_validator(mode="after")
    def _one_pass_has_no_rounds(self) -> SageOptions:
        if self.single_pass and "rounds" in self.model_fields_set and self.rounds != 1:
            raise ValueError("`single_pass` is one round: leave `rounds` out")
        return self

    @property
    def searched_rounds(self) -> int:
        """Rounds that are made."""
        return 1 if self.single_pass else self.rounds

    @property
    def writes_queries(self) -> bool:
        """Whether the judge writes anything that is searched for."""
        return self.first_written <= self.searched_rounds

    @property
    def first_written(self) -> int:
        """The first round that searches what the judge wrote; beyond the last where none does."""
        if self.single_pass or not self.refine:
            return self.searched_rounds + 1
        return 1 if self.rewrite_first else 2
