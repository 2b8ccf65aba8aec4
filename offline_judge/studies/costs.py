"""What each condition of a study costs, and which is the cheapest that judges as well."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from offline_judge.domain.base import Frozen
from offline_judge.domain.costs import StageCost, add_up
from offline_judge.domain.scores import Interval
from offline_judge.errors import DataError
from offline_judge.metrics.bootstrap import Undefined, bootstrap
from offline_judge.studies.conditions import SHARED_ROUNDS
from offline_judge.studies.figures import difference
from offline_judge.studies.scores import Score, Table

Kind = Literal["alone", "paid"]
"""As if no other condition had paid for any of it, or as it was paid in this study."""


class CostRow(StageCost):
    """What one stage came to under one condition, summed over `samples` samples."""

    condition: str
    kind: Kind
    samples: int


class ConditionCost(Frozen):
    """What one condition costs alone.

    Attributes:
        condition: Its name.
        n: Samples the means stand on.
        seconds: Mean wall time of a sample, with its interval over questions.
        prompt_tokens: Mean tokens sent a sample.
        read_anew: Mean tokens read a sample.
        written: Mean tokens generated a sample.
        unpriced: Answers that an earlier run had paid for and whose price is not known; where
            there are any, the cost is too low.
        roles: Role to its sums over `role_samples` samples.
        role_samples: Samples these are summed over.
    """

    condition: str
    n: int
    seconds: Interval
    prompt_tokens: float
    read_anew: float
    written: float
    unpriced: int
    roles: tuple[StageCost, ...] = ()
    role_samples: int = 0


class Cheapest(Frozen):
    """The cheapest condition whose kappa is not below the best one's beyond doubt.

    Attributes:
        best: The condition with the highest kappa among those that are not shown the key.
        cheapest: Of those whose paired interval against the best includes 0, the one with the
            least seconds a sample; the best itself is one of them.
        interval: Kappa of the best less that of the cheapest.
        within: All of those, cheapest first.
    """

    best: str
    cheapest: str
    interval: Interval
    within: tuple[str, ...]


class SharedRounds(Frozen):
    """What N = 1, 2, 3 cost together, for what N = 3 costs alone.

    Attributes:
        together: Tokens read and written, a sample of each.
        alone: Tokens read and written by N = 3 alone, a sample.
        ratio: The former for the latter.
        unpriced: Answers of N = 3 whose price is not known; where there are any, the ratio
            says nothing.
    """

    together: float
    alone: float
    ratio: float
    unpriced: int = 0


def condition_cost(
    table: Table, condition: str, names: Sequence[str], rows: Iterable[CostRow]
) -> ConditionCost:
    """Means over these samples, and the roles' sums."""
    scores = [table.of(condition)[name] for name in names]
    groups: dict[str, list[Score]] = {}
    for score in scores:
        groups.setdefault(score.question, []).append(score)
    own = [row for row in rows if row.condition == condition and row.kind == "alone"]
    roles = dict.fromkeys(row.role for row in own)
    count = max(1, len(scores))
    return ConditionCost(
        condition=condition,
        n=len(scores),
        seconds=bootstrap(_mean_seconds, list(groups.values())),
        prompt_tokens=sum(score.prompt_tokens for score in scores) / count,
        read_anew=sum(score.read_anew for score in scores) / count,
        written=sum(score.written for score in scores) / count,
        unpriced=sum(score.unpriced for score in scores),
        roles=tuple(add_up(map(_bare, (r for r in own if r.role == name)), name) for name in roles),
        role_samples=max((row.samples for row in own), default=0),
    )


def cheapest(
    table: Table, names: Sequence[str], costs: Sequence[ConditionCost], kappas: dict[str, float]
) -> Cheapest | None:
    """Which condition to take; None where fewer than two have a kappa.

    Args:
        table: All scores.
        names: Samples compared.
        costs: Of the conditions that may be taken.
        kappas: Condition to kappa, of those that have one.
    """
    taken = {cost.condition: cost for cost in costs if cost.condition in kappas}
    if len(taken) < 2:
        return None
    best = max(taken, key=lambda name: kappas[name])
    against = {name: difference(table, (best, name), names) for name in taken}
    within = [
        name
        for name, interval in against.items()
        if name == best or (interval.low is not None and interval.low <= 0)
    ]
    within.sort(key=lambda name: taken[name].seconds.value or 0.0)
    return Cheapest(
        best=best, cheapest=within[0], interval=against[within[0]], within=tuple(within)
    )


def shared_rounds(rows: Sequence[CostRow], unpriced: int) -> SharedRounds | None:
    """What the conditions that share rounds cost; None where one of them is not there."""
    paid = [_per_sample(rows, name, "paid") for name in SHARED_ROUNDS]
    alone = _per_sample(rows, SHARED_ROUNDS[0], "alone")
    if alone == 0 or not all(_has(rows, name) for name in SHARED_ROUNDS):
        return None
    together = sum(paid)
    return SharedRounds(together=together, alone=alone, ratio=together / alone, unpriced=unpriced)


def write_costs(rows: Iterable[CostRow]) -> str:
    """CSV, its header first."""
    names = ["condition", "kind", "samples", *StageCost.model_fields]
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        values = row.model_dump()
        rounded = {name: round(values[name], 3) for name in ("read_s", "write_s")}
        writer.writerow({**values, **rounded})
    return text.getvalue()


def read_costs(path: Path) -> tuple[CostRow, ...]:
    """The rows of a costs file; none where there is no such file.

    Raises:
        DataError: it cannot be read, or a row is none.
    """
    if not path.exists():
        return ()
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return tuple(CostRow.model_validate(row) for row in csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error, ValidationError) as error:
        raise DataError(f"Cannot read costs: {error}", where=str(path)) from error


def _per_sample(rows: Iterable[CostRow], condition: str, kind: Kind) -> float:
    own = [row for row in rows if row.condition == condition and row.kind == kind]
    samples = max((row.samples for row in own), default=0)
    return sum(row.read_anew + row.written for row in own) / samples if samples else 0.0


def _has(rows: Iterable[CostRow], condition: str) -> bool:
    return any(row.condition == condition for row in rows)


def _bare(row: CostRow) -> StageCost:
    return StageCost(**{name: getattr(row, name) for name in StageCost.model_fields})


def _mean_seconds(scores: Sequence[Score]) -> float | Undefined:
    if not scores:
        return Undefined("no samples")
    return sum(score.seconds for score in scores) / len(scores)
