"""How fit a judge is to judge, by judgments whose answers are known."""

from __future__ import annotations

from offline_judge.domain.base import Frozen
from offline_judge.domain.scores import Interval


class Judged(Frozen):
    """One known judgment as the judge made it.

    Attributes:
        id: The item.
        way: `plain`, `reversed` (labels the other way round) or `repeat`.
        correct: What is known.
        said: What the judge said; None where that was no answer.
        probability: Of "correct"; None where the engine gives none.
        reason: Why there is no answer.
        long: The response is the long version.
        counted: Prompt tokens that the server says it read.
        prepared: Prompt tokens by our own count; None where there is none.
    """

    id: str
    way: str
    correct: bool
    said: bool | None
    probability: float | None = None
    reason: str = ""
    long: bool = False
    counted: int = 0
    prepared: int | None = None


class Share(Frozen):
    """A share of `n`, with its 95 % interval after Wilson (1927)."""

    share: float
    low: float
    high: float
    n: int


class Fitness(Frozen):
    """What 48 known judgments show of a judge.

    Attributes:
        judge: Name of the judge.
        agreement: Share of its answers that are right, of those it gave.
        kappa: Cohen's kappa with what is known; None where it is undefined.
        invalid: Share of the 48 that brought no answer.
        says_correct: Share of its answers that are "correct"; half of the items are.
        order_flips: Share of pairs whose verdict turns with the order of the labels.
        order_shift: Mean change of the probability of "correct" with the other order.
        length_flips: Share of pairs of a short and a long version whose verdicts differ.
        length_shift: By how much more often, or likely, the long version is called correct.
        stable: Share of items that got the same answer three times at temperature .7; None where
            none was asked.
        token_differences: Calls whose prompt tokens the server counted otherwise than we did.
        token_calls: Calls that could be compared.
        alarms: What speaks against it, a sentence each.
        advice: One line.
        seconds: Wall time.
        judged: Every answer.
    """

    judge: str
    agreement: Share | None
    kappa: float | None
    invalid: Share
    says_correct: Share | None
    order_flips: Share | None
    order_shift: float | None
    length_flips: Share | None
    length_shift: Interval | None
    stable: Share | None
    token_differences: int
    token_calls: int
    alarms: tuple[str, ...] = ()
    advice: str = ""
    seconds: float = 0.0
    judged: tuple[Judged, ...] = ()

    @property
    def fit(self) -> bool:
        """Nothing speaks against it."""
        return not self.alarms
