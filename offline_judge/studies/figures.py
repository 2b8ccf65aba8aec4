"""The figures of a study: each condition against people, and conditions against each other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from pydantic import Field

from offline_judge.domain.base import Frozen
from offline_judge.domain.scores import Interval
from offline_judge.metrics import agreement
from offline_judge.metrics.agreement import Row
from offline_judge.metrics.bootstrap import Undefined, bootstrap, paired_difference
from offline_judge.studies.scores import Score, Table

Statistic = Callable[[Sequence[Row]], float | Undefined]


def share_gap(rows: Sequence[Row]) -> float | Undefined:
    """Share the judge calls correct less the share people do."""
    judge, people = agreement.share_correct(rows), agreement.share_labelled_correct(rows)
    if isinstance(judge, Undefined):
        return judge
    return people if isinstance(people, Undefined) else judge - people


FIGURES: dict[str, Statistic] = {
    "accuracy": agreement.accuracy,
    "kappa": agreement.kappa,
    "macro_f1": agreement.macro_f1,
    "auroc": agreement.auroc,
    "says_correct": agreement.share_correct,
    "people_correct": agreement.share_labelled_correct,
    "gap": share_gap,
}
"""Figures of one condition, in the order they are shown."""

DEFAULT, FITTED = "default", "fitted"
"""Readings: the verdict as the judge gave it, and by a threshold fitted on another set."""

GOLD_GROUPS = {
    "gold": "gold passage in the corpus",
    "first": "found by the first search",
    "later": "found by a later round only",
    "never": "never found",
}


class ConditionFigures(Frozen):
    """One condition at one reading.

    Attributes:
        condition: Its name.
        reading: `default` or `fitted`.
        threshold: The fitted threshold; None at the default one.
        n: Samples with label and verdict, which the figures stand on.
        unscored: Samples without a verdict, never in the figures.
        figures: Name to value with its interval over questions.
    """

    condition: str
    reading: str
    threshold: float | None = None
    n: int
    unscored: int
    figures: dict[str, Interval]


class Difference(Frozen):
    """Kappa of `first` less that of `second` over the same samples, questions drawn for both."""

    first: str
    second: str
    reading: str
    interval: Interval


class GoldFound(Frozen):
    """How one condition fares on the samples whose passage with the answer is in the corpus.

    Attributes:
        condition: Its name.
        n: Of these, samples with a verdict.
        first: Samples for which the first search found that passage, among the passages taken.
        later: Samples for which a later round found it.
        never: Samples for which none did; 0 in all three under a condition without search.
        kappa: At the default threshold.
        gap: Share called correct less people's.
    """

    condition: str
    n: int
    first: int
    later: int
    never: int
    kappa: Interval
    gap: Interval


class GoldFigures(Frozen):
    """A group of samples by when the passage with the answer was found.

    Attributes:
        group: Key of `GOLD_GROUPS`.
        by: The condition whose rounds part the samples.
        n: Samples.
        questions: Questions they belong to.
        kappas: Condition to kappa on this group, at the default threshold.
        differences: Condition to kappa of `by` less that of the condition.
    """

    group: str
    by: str
    n: int
    questions: int
    kappas: dict[str, Interval] = Field(default_factory=dict)
    differences: dict[str, Interval] = Field(default_factory=dict)


def judged(table: Table, condition: str, names: Iterable[str]) -> list[Score]:
    """The scored ones of these samples."""
    scores = table.of(condition)
    return [scores[name] for name in names if scores[name].scored]


def condition_figures(
    table: Table, condition: str, names: Sequence[str], threshold: float | None = None
) -> ConditionFigures:
    """All figures of one condition over these samples."""
    scores = judged(table, condition, names)
    groups = _groups(scores, threshold)
    return ConditionFigures(
        condition=condition,
        reading=DEFAULT if threshold is None else FITTED,
        threshold=threshold,
        n=len(scores),
        unscored=len(names) - len(scores),
        figures={name: bootstrap(statistic, groups) for name, statistic in FIGURES.items()},
    )


def difference(
    table: Table,
    pair: tuple[str, str],
    names: Iterable[str],
    thresholds: Mapping[str, float] | None = None,
) -> Interval:
    """Kappa of the first less that of the second, over the samples both gave a verdict on."""
    first, second = table.of(pair[0]), table.of(pair[1])
    both = [name for name in names if first[name].scored and second[name].scored]
    sides = []
    for condition, scores in zip(pair, (first, second), strict=True):
        threshold = None if thresholds is None else thresholds[condition]
        sides.append(_groups([scores[name] for name in both], threshold))
    return paired_difference(agreement.kappa, *sides)


def gold_figures(
    table: Table, by: str, names: Sequence[str], others: Sequence[str]
) -> tuple[GoldFigures, ...]:
    """Samples parted by the round of `by` that took the passage with the answer.

    Args:
        table: Scores of all conditions.
        by: The condition whose rounds count.
        names: Samples to part.
        others: Conditions to compare it with on each part.
    """
    rounds = {name: table.of(by)[name].gold_round for name in names}
    parts = {
        "gold": [name for name in names if rounds[name] is not None],
        "first": [name for name in names if rounds[name] == 1],
        "later": [name for name in names if (rounds[name] or 0) > 1],
        "never": [name for name in names if rounds[name] == 0],
    }
    found = []
    for group, members in parts.items():
        questions = {table.of(by)[name].question for name in members}
        shown = (by, *others)
        found.append(
            GoldFigures(
                group=group,
                by=by,
                n=len(members),
                questions=len(questions),
                kappas={one: _kappa(table, one, members) for one in shown},
                differences={one: difference(table, (by, one), members) for one in others},
            )
        )
    return tuple(found) if parts["gold"] else ()


def gold_found(table: Table, by: str, names: Iterable[str]) -> tuple[GoldFound, ...]:
    """One entry a condition, over the samples whose passage `by` says is known."""
    known = [name for name in names if table.of(by)[name].gold_round is not None]
    found = []
    for condition in table.conditions if known else ():
        scores = judged(table, condition, known)
        rounds = [score.gold_round for score in scores if score.gold_round is not None]
        groups = _groups(scores, None)
        found.append(
            GoldFound(
                condition=condition,
                n=len(scores),
                first=rounds.count(1),
                later=sum(number > 1 for number in rounds),
                never=rounds.count(0),
                kappa=bootstrap(agreement.kappa, groups),
                gap=bootstrap(share_gap, groups),
            )
        )
    return tuple(found)


def _kappa(table: Table, condition: str, names: Sequence[str]) -> Interval:
    return bootstrap(agreement.kappa, _groups(judged(table, condition, names), None))


def _groups(scores: Iterable[Score], threshold: float | None) -> list[list[Row]]:
    """The rows of each question, questions in the order of the samples."""
    found: dict[str, list[Row]] = {}
    for score in scores:
        found.setdefault(score.question, []).append(score.row(threshold))
    return list(found.values())
