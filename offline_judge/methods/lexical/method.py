"""Method `lexical`: the response is compared with the accepted answers word by word.

The baseline without any model. It cannot tell "It is Astana" from "It is not Astana", and does not
know that "forty" is 40: it measures how far spelling alone gets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Literal

from pydantic import Field

from offline_judge.domain.base import Frozen
from offline_judge.domain.judgment import Judgment, UnscoredReason
from offline_judge.domain.sample import Sample
from offline_judge.errors import UnscoredError
from offline_judge.methods.lexical.words import contains, exact, token_f1, words
from offline_judge.methods.options import read_options
from offline_judge.protocols import Method, MethodContext, Values

_SCORES: dict[str, Callable[[Sequence[str], Sequence[str]], float]] = {
    "contains": contains,
    "exact": exact,
    "f1": token_f1,
}
_SAID = {
    "contains": ("It contains", "It contains none of the accepted answers."),
    "exact": ("It is", "It is none of the accepted answers."),
    "f1": ("It is closest to", "It shares no word with an accepted answer."),
}


class LexicalOptions(Frozen):
    """Options of `lexical`."""

    metric: Literal["contains", "exact", "f1"] = Field(
        default="contains",
        description="`contains` (an accepted answer stands in the response, as whole words), "
        "`exact` (the response is one), or `f1` (they share words).",
    )
    threshold: float = Field(
        default=0.5,
        gt=0,
        le=1,
        description="F1 from which a response counts as correct; the other metrics are 0 or 1.",
    )


class Lexical:
    """Scores against the nearest accepted answer; the probability is the score, in [0, 1]."""

    name: ClassVar[str] = "lexical"
    searches: ClassVar[bool] = False
    option_model: ClassVar[type[Frozen]] = LexicalOptions

    def __init__(self, options: LexicalOptions) -> None:
        self._options = options

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> Lexical:
        """Build from raw options.

        Raises:
            UsageError: naming an option that is unknown or out of range.
        """
        return cls(read_options(LexicalOptions, cls.name, options))

    @property
    def stages(self) -> tuple[str, ...]:
        """None: no judge is asked, so no engine is started and no weights are needed."""
        return ()

    @property
    def options(self) -> dict[str, Any]:
        """All options with their values."""
        return self._options.model_dump()

    def largest_prompts(self, sample: Sample) -> tuple[tuple[str, Values, int], ...]:
        """None."""
        del sample
        return ()

    async def judge(self, sample: Sample, context: MethodContext) -> Judgment:
        """Compare with each accepted answer and take the best score.

        Raises:
            UnscoredError: `no-reference`, where there is no accepted answer with a word in it.
        """
        del context
        score, answer = self._best(sample)
        threshold = self._options.threshold if self._options.metric == "f1" else 1.0
        near, far = _SAID[self._options.metric]
        return Judgment(
            verdict=score >= threshold,
            probability=score,
            rationale=f"{near} “{answer}”{self._shown(score)}." if score else far,
        )

    def _best(self, sample: Sample) -> tuple[float, str]:
        score = _SCORES[self._options.metric]
        scored = [
            (score(response, answer), text)
            for text in sample.reference
            for response, answer in [_compared(sample.response, text)]
            if answer
        ]
        if not scored:
            detail = "the sample has no accepted answer to compare with"
            raise UnscoredError(UnscoredReason.NO_REFERENCE, detail)
        return max(scored, key=lambda found: found[0])

    def _shown(self, score: float) -> str:
        return f", F1 {score:.2f}" if self._options.metric == "f1" else ""


def _compared(response: str, answer: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The words of both, articles too where the answer is nothing else: "A", a blood group."""
    wanted = words(answer)
    if wanted:
        return words(response), wanted
    return words(response, articles=True), words(answer, articles=True)


METHOD: type[Method] = Lexical
