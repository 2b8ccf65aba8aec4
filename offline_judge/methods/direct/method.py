"""Method `direct`: one reading of the verdict from the judge's own knowledge."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import Field

from offline_judge.domain.base import Frozen
from offline_judge.domain.judgment import Judgment
from offline_judge.domain.sample import Sample
from offline_judge.methods.options import RATIONALE, read_options
from offline_judge.methods.verdict import RATIONALE_TOKENS, reach_verdict
from offline_judge.protocols import Method, MethodContext, Untrusted, Values


class DirectOptions(Frozen):
    """Options of `direct`."""

    rationale: bool = Field(default=True, description=RATIONALE)


class Direct:
    """The judge sees question and response, and nothing else."""

    name: ClassVar[str] = "direct"
    searches: ClassVar[bool] = False
    option_model: ClassVar[type[Frozen]] = DirectOptions

    def __init__(self, options: DirectOptions) -> None:
        self._options = options

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> Direct:
        """Build from raw options.

        Raises:
            UsageError: naming an option that is unknown or out of range.
        """
        return cls(read_options(DirectOptions, cls.name, options))

    @property
    def stages(self) -> tuple[str, ...]:
        """One stage, the verdict."""
        return ("verdict",)

    @property
    def options(self) -> dict[str, Any]:
        """All options with their values."""
        return self._options.model_dump()

    def largest_prompts(self, sample: Sample) -> tuple[tuple[str, Values, int], ...]:
        """The verdict prompt with room for a rationale."""
        return (("verdict", _values(sample), 2 * RATIONALE_TOKENS),)

    async def judge(self, sample: Sample, context: MethodContext) -> Judgment:
        """Read the verdict without any evidence.

        Raises:
            UnscoredError: with the typed reason.
        """
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


def _values(sample: Sample) -> Values:
    return {"question": sample.question, "response": Untrusted(sample.response, "response")}


METHOD: type[Method] = Direct
