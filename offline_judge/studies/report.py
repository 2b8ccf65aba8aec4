"""A study's report: every figure with its interval and what it leaves out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import Field

from offline_judge.domain.base import Frozen
from offline_judge.errors import DataError
from offline_judge.studies.conditions import SHARED_ROUNDS
from offline_judge.studies.costs import (
    Cheapest,
    ConditionCost,
    CostRow,
    SharedRounds,
    cheapest,
    condition_cost,
    shared_rounds,
)
from offline_judge.studies.figures import (
    DEFAULT,
    FITTED,
    ConditionFigures,
    Difference,
    GoldFigures,
    GoldFound,
    condition_figures,
    difference,
    gold_figures,
    gold_found,
)
from offline_judge.studies.scores import Score, Table
from offline_judge.studies.thresholds import Fitted

SHOWN_KEY = ("reference", "lexical")
"""Conditions that are shown the reference answers, and so are no choice where there are none."""
_PAIRS = (("sage-single", "direct"), ("sage-n2", "sage-n1"))
"""Compared besides the main condition with every other."""


class About(Frozen):
    """What a study is about: identities, no texts and no paths.

    Attributes:
        data: Name of the data file, or of the scores read again.
        data_sha256: Its content.
        judge: Name of the judge's model card.
        judge_sha256: Its weights.
        search: Name of what was searched.
        runs: Condition to run id.
        options: Condition to the method's options.
        status: How the study ended: `completed`, `limit`, `stopped`.
        version: Of this program.
        notes: What a reader must know: what was skipped and why.
    """

    data: str = ""
    data_sha256: str = ""
    judge: str = ""
    judge_sha256: str = ""
    search: str = ""
    runs: dict[str, str] = Field(default_factory=dict)
    options: dict[str, dict[str, Any]] = Field(default_factory=dict)
    status: str = ""
    version: str = ""
    notes: tuple[str, ...] = ()


class StudyReport(Frozen):
    """All figures of a study.

    Attributes:
        about: What was judged by what.
        main: The condition the others are compared with.
        samples: Samples that every condition judged; all figures stand on these.
        questions: Questions they belong to.
        left_out: Samples that only some conditions judged.
        thresholds: Condition to fitted threshold; empty where none was asked for.
        threshold_source: What they were fitted on.
        threshold_rows: Samples they were fitted on.
        figures: One entry a condition and reading.
        differences: Paired differences of kappa.
        found: By condition, on the samples whose passage with the answer is in the corpus.
        gold: By when the passage with the answer was found, where that is known.
        costs: What each condition costs alone.
        shared: What N = 1, 2, 3 cost together.
        cheapest: The cheapest condition that judges as well as the best.
    """

    about: About
    main: str
    samples: int
    questions: int
    left_out: int
    thresholds: dict[str, float] = Field(default_factory=dict)
    threshold_source: str = ""
    threshold_rows: int = 0
    figures: tuple[ConditionFigures, ...] = ()
    differences: tuple[Difference, ...] = ()
    found: tuple[GoldFound, ...] = ()
    gold: tuple[GoldFigures, ...] = ()
    costs: tuple[ConditionCost, ...] = ()
    shared: SharedRounds | None = None
    cheapest: Cheapest | None = None


@dataclass(frozen=True)
class Material:
    """What a report is made from."""

    scores: Sequence[Score]
    costs: Sequence[CostRow] = ()
    fitted: Fitted | None = None


def make_report(material: Material, about: About) -> StudyReport:
    """Work out every figure.

    Raises:
        DataError: there is no sample that all conditions judged.
    """
    table = Table(material.scores)
    names = table.common()
    if not names:
        raise DataError(
            "No sample was judged under every condition, so nothing can be compared.",
            remedy="Let the study go on with the same command.",
        )
    main = SHARED_ROUNDS[0] if SHARED_ROUNDS[0] in table.conditions else table.conditions[-1]
    fitted = material.fitted
    thresholds = fitted.thresholds if fitted else {}
    figures = _figures(table, names, thresholds)
    costs = tuple(condition_cost(table, one, names, material.costs) for one in table.conditions)
    by_condition = {cost.condition: cost for cost in costs}
    return StudyReport(
        about=about.model_copy(update={"notes": (*about.notes, *_doubts(fitted, names))}),
        main=main,
        samples=len(names),
        questions=len({table.of(main)[name].question for name in names}),
        left_out=table.left_out(),
        thresholds=thresholds,
        threshold_source=fitted.source if fitted else "",
        threshold_rows=len(fitted.samples) if fitted else 0,
        figures=figures,
        differences=_differences(table, names, main, thresholds),
        found=gold_found(table, main, names),
        gold=gold_figures(table, main, names, _others(table, main)),
        costs=costs,
        shared=_shared(material.costs, by_condition),
        cheapest=cheapest(
            table,
            names,
            [cost for cost in costs if cost.condition not in SHOWN_KEY],
            _kappas(figures),
        ),
    )


def _figures(
    table: Table, names: Sequence[str], thresholds: Mapping[str, float]
) -> tuple[ConditionFigures, ...]:
    default = [condition_figures(table, one, names) for one in table.conditions]
    fitted = [
        condition_figures(table, one, names, thresholds[one])
        for one in table.conditions
        if one in thresholds
    ]
    return (*default, *fitted)


def _differences(
    table: Table, names: Sequence[str], main: str, thresholds: Mapping[str, float]
) -> tuple[Difference, ...]:
    pairs = [(main, other) for other in table.conditions if other != main]
    pairs += [pair for pair in _PAIRS if set(pair) <= set(table.conditions)]
    found = [
        Difference(
            first=pair[0],
            second=pair[1],
            reading=DEFAULT,
            interval=difference(table, pair, names),
        )
        for pair in pairs
    ]
    found += [
        Difference(
            first=pair[0],
            second=pair[1],
            reading=FITTED,
            interval=difference(table, pair, names, thresholds),
        )
        for pair in pairs
        if set(pair) <= thresholds.keys()
    ]
    return tuple(found)


def _others(table: Table, main: str) -> tuple[str, ...]:
    return tuple(name for name in table.conditions if name not in (*SHOWN_KEY, main))


def _kappas(figures: Sequence[ConditionFigures]) -> dict[str, float]:
    found = {one.condition: one.figures["kappa"].value for one in figures if one.reading == DEFAULT}
    return {name: value for name, value in found.items() if value is not None}


def _shared(rows: Sequence[CostRow], costs: Mapping[str, ConditionCost]) -> SharedRounds | None:
    first = costs.get(SHARED_ROUNDS[0])
    return shared_rounds(rows, first.unpriced) if first and rows else None


def _doubts(fitted: Fitted | None, names: Sequence[str]) -> tuple[str, ...]:
    """What a reader of fitted thresholds must know."""
    if fitted is None:
        return ()
    notes = [f"No fitted threshold for {name}: {why}." for name, why in fitted.missing.items()]
    same = len(set(fitted.samples) & set(names))
    if same:
        notes.append(
            f"{same} samples that the thresholds were fitted on are among those judged here, so "
            "the figures at the fitted threshold flatter."
        )
    return tuple(notes)
