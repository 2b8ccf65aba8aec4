"""What each condition would cost alone, though conditions of a study share answers by the cache.

An answer that a condition found in the completion cache, and that none of its own calls had paid
for, is charged to it at the price that the condition which did pay told in its trace.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from offline_judge.domain.costs import StageCost
from offline_judge.domain.events import AnyEvent, CallFinished, SampleFinished, SampleStarted
from offline_judge.runs.costs import call_cost

Key = tuple[str, str, bool]
"""Template, hash of the prompt, and whether labels were read."""


@dataclass
class SampleCost:
    """What one sample costs alone.

    Attributes:
        stages: Stage to its cost.
        seconds: Wall time, with that of the answers which others had paid for.
        unpriced: Answers found in the cache whose price is not known: paid for by a run that is
            no part of the study.
    """

    stages: dict[str, StageCost] = field(default_factory=dict)
    seconds: float = 0.0
    unpriced: int = 0

    def add(self, cost: StageCost) -> None:
        """Count a call."""
        known = self.stages.get(cost.stage)
        self.stages[cost.stage] = known.plus(cost) if known else cost

    @property
    def read_anew(self) -> int:
        """Prompt tokens read."""
        return sum(cost.read_anew for cost in self.stages.values())

    @property
    def written(self) -> int:
        """Tokens generated."""
        return sum(cost.written for cost in self.stages.values())


Prices = dict[Key, StageCost]


def learn_prices(events: Iterable[AnyEvent], prices: Prices) -> None:
    """Add what each answer of a run cost, its rejected attempts included."""
    pending: dict[tuple[str, str, int], tuple[Key, StageCost]] = {}
    for event in events:
        if not isinstance(event, CallFinished) or event.reused:
            continue
        place = (event.sample_id, event.stage, event.round)
        # What is accepted in the end is kept under the first attempt's prompt.
        key, cost = pending.pop(place, (_key(event), StageCost(stage=event.stage)))
        cost = cost.plus(call_cost(event))
        if event.problem:
            pending[place] = (key, cost)
        # A reading whose labels were refused is kept in the cache all the same.
        if not event.problem or event.masses is not None:
            prices.setdefault(key, cost)


def cost_alone(
    events: Iterable[AnyEvent], prices: Mapping[Key, StageCost]
) -> dict[str, SampleCost]:
    """Sample id to what the sample costs where no other condition pays for any of it.

    Attempts that were interrupted are left out: only the one that came to an end counts.
    """
    found: dict[str, SampleCost] = {}
    open_: dict[str, SampleCost] = {}
    had: dict[Key, str] = {}
    for event in events:
        sample = event.sample_id
        match event:
            case SampleStarted():
                open_[sample] = SampleCost()
                # What an attempt that came to nothing paid for is charged to the next one.
                had = {key: payer for key, payer in had.items() if payer != sample}
            case CallFinished() if sample in open_:
                _charge(open_[sample], event, had, prices)
                had.setdefault(_key(event), sample)
            case SampleFinished() if sample in open_:
                found[sample] = open_.pop(sample)
                found[sample].seconds += event.seconds
    return found


def _charge(
    to: SampleCost, event: CallFinished, had: Mapping[Key, str], prices: Mapping[Key, StageCost]
) -> None:
    price = None
    if event.reused and _key(event) not in had:
        price = prices.get(_key(event))
        to.unpriced += price is None
    if price is not None:
        to.seconds += price.seconds
    to.add(price or call_cost(event))


def _key(event: CallFinished) -> Key:
    return event.template, event.prompt_hash, event.masses is not None
