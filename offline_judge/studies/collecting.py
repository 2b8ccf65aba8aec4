"""From the runs of a study to its scores and costs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from offline_judge import wiring
from offline_judge.domain.costs import StageCost
from offline_judge.domain.events import AnyEvent
from offline_judge.domain.sample import Sample
from offline_judge.runs.costs import fold_costs
from offline_judge.runs.reader import read_events
from offline_judge.runs.reducer import SampleRow, fold
from offline_judge.settings import Settings
from offline_judge.studies.alone import Prices, SampleCost, cost_alone, learn_prices
from offline_judge.studies.costs import CostRow, Kind
from offline_judge.studies.gold import Gold, gold_rounds
from offline_judge.studies.scores import Score

_QUESTION_DIGITS = 12


@dataclass(frozen=True)
class Collected:
    """Scores by condition and sample, and costs by condition and stage."""

    scores: tuple[Score, ...]
    costs: tuple[CostRow, ...]


def collect(
    runs: Mapping[str, str],
    samples: Sequence[Sample],
    settings: Settings,
    gold: Gold | None = None,
) -> Collected:
    """Read the traces of a study's runs.

    Args:
        runs: Condition to run id.
        samples: The samples that count, with people's labels, in the order of the scores.
        settings: Where runs are.
        gold: Where the passages that hold the answers are known.

    Raises:
        RunNotFoundError: a run is gone.
        StorageError: a trace is damaged.
    """
    prices: Prices = {}
    for run_id in runs.values():
        learn_prices(_events(run_id, settings), prices)
    scores: list[Score] = []
    costs: list[CostRow] = []
    for condition, run_id in runs.items():
        events = list(_events(run_id, settings))
        alone = cost_alone(events, prices)
        rounds = gold_rounds(events, gold or Gold({}))
        rows = {row.id: row for row in fold(events).rows()}
        for sample in samples:
            if sample.id in rows:
                row, cost = rows[sample.id], alone.get(sample.id, SampleCost())
                scores.append(_score(condition, sample, row, cost, rounds.get(sample.id)))
        costs += _cost_rows(condition, events, alone)
    return Collected(tuple(scores), tuple(costs))


def _events(run_id: str, settings: Settings) -> Iterator[AnyEvent]:
    return read_events(wiring.run_store(settings).open(run_id).path, texts=False)


def _score(
    condition: str, sample: Sample, row: SampleRow, cost: SampleCost, gold_round: int | None
) -> Score:
    return Score(
        condition=condition,
        sample=sample.id,
        question=sample.question_key()[:_QUESTION_DIGITS],
        label=bool(sample.label),
        outcome=str(row.outcome),
        reason=row.reason,
        probability=row.probability,
        verdict=row.verdict,
        seconds=round(cost.seconds, 3),
        prompt_tokens=sum(stage.prompt_tokens for stage in cost.stages.values()),
        read_anew=cost.read_anew,
        written=cost.written,
        unpriced=cost.unpriced,
        searches=row.searches,
        gold_round=gold_round if row.searches else None,
    )


def _cost_rows(
    condition: str, events: Sequence[AnyEvent], alone: Mapping[str, SampleCost]
) -> Iterator[CostRow]:
    summed: dict[str, StageCost] = {}
    for cost in alone.values():
        for name, stage in cost.stages.items():
            summed[name] = summed[name].plus(stage) if name in summed else stage
    paid = fold_costs(events)
    kinds: tuple[tuple[Kind, Sequence[StageCost], int], ...] = (
        ("alone", tuple(summed.values()), len(alone)),
        ("paid", paid.stages, paid.samples),
    )
    for kind, stages, samples in kinds:
        for stage in stages:
            yield CostRow(**stage.model_dump(), condition=condition, kind=kind, samples=samples)
