"""Method `reference`: the judge is shown the accepted answers and compares.

RefGPT of the SAGE paper (arXiv 2504.07385), as one judge. What a judge gets right with the key
before it is what it can at most get right by finding the answer itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import Field

from offline_judge.domain.base import Frozen
from offline_judge.domain.judgment import Judgment, UnscoredReason
from offline_judge.domain.sample import Sample
from offline_judge.errors import UnscoredError
from offline_judge.methods.options import RATIONALE, read_options
from offline_judge.methods.verdict import RATIONALE_TOKENS, reach_verdict
from offline_judge.protocols import Method, MethodContext, Untrusted, Values


class ReferenceOptions(Frozen):
    """Options of `reference`."""

    rationale: bool = Field(default=True, description=RATIONALE)


class Reference:
    """The judge sees question, accepted answers and response; nothing is searched."""

    name: ClassVar[str] = "reference"
    searches: ClassVar[bool] = False
    option_model: ClassVar[type[Frozen]] = ReferenceOptions

    def __init__(self, options: ReferenceOptions) -> None:
        self._options = options

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> Reference:
        """Build from raw options.

        Raises:
            UsageError: naming an option that is unknown or out of range.
        """
        return cls(read_options(ReferenceOptions, cls.name, options))

    @property
    def stages(self) -> tuple[str, ...]:
        """One stage, the verdict."""
        return ("verdict",)

    @property
    def options(self) -> dict[str, Any]:
        """All options with their values."""
        return self._options.model_dump()

    def largest_prompts(self, sample: Sample) -> tuple[tuple[str, Values, int], ...]:
        """The verdict prompt with room for a rationale; none for a sample without a reference."""
        if not _accepted(sample):
            return ()
        return (("verdict", _values(sample), 2 * RATIONALE_TOKENS),)

    async def judge(self, sample: Sample, context: MethodContext) -> Judgment:
        """Read the verdict with the accepted answers in the prompt.

        Raises:
            UnscoredError: `no-reference` without an accepted answer, else with its typed reason.
        """
        if not _accepted(sample):
            detail = "the sample has no accepted answer to show the judge"
            raise UnscoredError(UnscoredReason.NO_REFERENCE, detail)
        verdict = await reach_verdict(
            context.judge, _values(sample), rationale=self._options.rationale
        )
        return Judgment(
            verdict=verdict.correct,
            probability=verdict.probability,
            outside=verdict.outside,
            rationale=verdict.rationale,
            rationale_disagrees=verdict.disagrees,
        )


def _accepted(sample: Sample) -> tuple[str, ...]:
    """The accepted answers without blanks and repetitions, in their order."""
    stripped = (answer.strip() for answer in sample.reference)
    return tuple(dict.fromkeys(answer for answer in stripped if answer))


def _values(sample: Sample) -> Values:
    return {
        "question": sample.question,
        "accepted": Untrusted(" or ".join(_accepted(sample)), "reference"),
        "response": Untrusted(sample.response, "response"),
    }


METHOD: type[Method] = Reference
