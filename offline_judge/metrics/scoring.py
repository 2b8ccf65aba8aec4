"""All figures of one reading of a run, with their intervals, and the share corrected for errors.

The corrected share takes the judge's error rates from a calibration, from labels held out, or,
where only one set of labels is there, from that set itself by cross-fitting: the questions are
parted into five folds, the share of each is corrected with the error rates of the other four, and
the corrected shares are averaged by their samples. With rates of the very same samples the result
would be people's share by construction and say nothing; cross-fitted it shows whether rates
learnt on some questions hold for others. Cross-fitted rates are estimated anew in each resample;
rates from elsewhere are taken as known, so their own uncertainty is not in the interval.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from offline_judge.domain.calibration import ErrorRates
from offline_judge.domain.scores import Correction, Figures, Interval
from offline_judge.metrics import agreement
from offline_judge.metrics.agreement import Corrected, Row, corrected_share
from offline_judge.metrics.bootstrap import RESAMPLES, Undefined, bootstrap

Statistic = Callable[[Sequence[Row]], float | Undefined]


def share_gap(rows: Sequence[Row]) -> float | Undefined:
    """Share the judge calls correct less people's share."""
    if not rows:
        return agreement.NO_ROWS
    return sum(row[1] - row[0] for row in rows) / len(rows)


STATISTICS: dict[str, Statistic] = {
    "accuracy": agreement.accuracy,
    "kappa": agreement.kappa,
    "macro_f1": agreement.macro_f1,
    "auroc": agreement.auroc,
    "sensitivity": agreement.sensitivity,
    "specificity": agreement.specificity,
    "share_correct": agreement.share_correct,
    "share_people": agreement.share_labelled_correct,
    "share_gap": share_gap,
}
"""Name in `Figures` to the statistic of a list of rows."""


def figures(
    groups: Sequence[Sequence[Row]],
    rates: ErrorRates | None = None,
    source: str = "",
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Figures:
    """All figures over the rows of each question.

    Args:
        groups: The rows of each question; `Row.fold` tells which fold it belongs to.
        rates: Known error rates; None takes them from the rows themselves, cross-fitted.
        source: Where known rates come from, as `Correction.source` names it.
        resamples: Of the bootstrap.
        seed: Of the bootstrap.
    """

    def interval(statistic: Statistic) -> Interval:
        return bootstrap(statistic, groups, n=resamples, seed=seed)

    rows = [row for group in groups for row in group]
    found = {name: interval(statistic) for name, statistic in STATISTICS.items()}
    return Figures(
        **found,
        corrected=_correction(rows, rates, source, interval),
        confusion=agreement.confusion(rows),
    )


def cross_corrected(rows: Sequence[Row]) -> Corrected | Undefined:
    """The share corrected fold by fold with the error rates of the other folds."""
    if not rows:
        return agreement.NO_ROWS
    cells = Counter((row.fold, row.label, row.verdict) for row in rows)
    folds = sorted({row.fold for row in rows})
    if len(folds) < 2:
        return Undefined("one question has no other to learn error rates from")
    raw = 0.0
    for fold in folds:
        own = _called(cells, [fold])
        found = _corrected_by(cells, own, [other for other in folds if other != fold])
        if isinstance(found, Undefined):
            return found
        # Only the whole is cut to [0, 1]: cutting folds would bias it.
        raw += found.raw * sum(own.values()) / len(rows)
    return Corrected(min(1.0, max(0.0, raw)), raw)


def _called(
    cells: Counter[tuple[int, bool, bool]], folds: Sequence[int]
) -> Counter[tuple[bool, bool]]:
    """(label, verdict) to number of samples in these folds."""
    kinds = [(label, verdict) for label in (True, False) for verdict in (True, False)]
    return Counter({kind: sum(cells[fold, *kind] for fold in folds) for kind in kinds})


def _corrected_by(
    cells: Counter[tuple[int, bool, bool]],
    own: Counter[tuple[bool, bool]],
    others: Sequence[int],
) -> Corrected | Undefined:
    known = _called(cells, others)
    positives = known[True, True] + known[True, False]
    negatives = known[False, True] + known[False, False]
    if not positives or not negatives:
        missing = "correct" if not positives else "incorrect"
        return Undefined(f"people call no sample {missing} where the error rates are learnt")
    share = (own[True, True] + own[False, True]) / sum(own.values())
    return corrected_share(share, known[True, True] / positives, known[False, False] / negatives)


def _correction(
    rows: Sequence[Row],
    rates: ErrorRates | None,
    source: str,
    interval: Callable[[Statistic], Interval],
) -> Correction:
    def correct(some: Sequence[Row]) -> Corrected | Undefined:
        return cross_corrected(some) if rates is None else _known(some, rates)

    def statistic(some: Sequence[Row]) -> float | Undefined:
        found = correct(some)
        return found if isinstance(found, Undefined) else found.value

    whole = correct(rows)
    known = {} if rates is None else rates.model_dump(include={"sensitivity", "specificity"})
    return Correction.model_validate(
        {
            "share": interval(statistic),
            "raw": None if isinstance(whole, Undefined) else whole.raw,
            "clipped": not isinstance(whole, Undefined) and whole.clipped,
            "source": source or "cross-fitted",
            "n": len(rows) if rates is None else rates.n,
            **known,
        }
    )


def _known(rows: Sequence[Row], rates: ErrorRates) -> Corrected | Undefined:
    share = agreement.share_correct(rows)
    if isinstance(share, Undefined):
        return share
    if rates.sensitivity is None or rates.specificity is None:
        return Undefined(f"the judge's error rates are unknown: {rates.reason}")
    return corrected_share(share, rates.sensitivity, rates.specificity)
