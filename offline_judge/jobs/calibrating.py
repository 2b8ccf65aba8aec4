"""Fitting a calibration on what people said of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import get_args

from offline_judge.calibration.files import write_calibration
from offline_judge.calibration.fitting import CannotFitError, Labelled, cross_fit, error_rates, fit
from offline_judge.calibration.identity import identity_of
from offline_judge.calibration.plot import check_plot, draw_reliability
from offline_judge.calibration.thresholds import AIMS
from offline_judge.domain.calibration import HASH_DIGITS, Calibration, Kind
from offline_judge.domain.scores import Figures, Fit, Reliability
from offline_judge.errors import DataError, UsageError
from offline_judge.jobs.labelling import JudgedSample, LabelFile, LabelledRun, open_labelled
from offline_judge.jobs.readings import Read, grouped, own_reading, row_of
from offline_judge.metrics.agreement import Row
from offline_judge.metrics.bootstrap import RESAMPLES
from offline_judge.metrics.reliability import reliability
from offline_judge.metrics.scoring import figures
from offline_judge.settings import Settings

FEW = 50
"""With fewer labelled samples than this a fit is warned about."""


@dataclass(frozen=True)
class FitOrder:
    """What to fit, and on what.

    Attributes:
        run_id: An id, a prefix that only one run has, or `last`.
        out: File for the calibration.
        labels: What people said; None takes the labels of the run's data.
        kind: `threshold`, `isotonic` or `platt`.
        aim: Figure the threshold shall be best by; "" means kappa for `threshold`, else that it
            stays at .5.
        plot: File for the reliability plot, .png or .svg.
        resamples: Of the bootstrap.
        seed: Of the bootstrap.
    """

    run_id: str
    out: Path
    labels: LabelFile | None = None
    kind: Kind = "threshold"
    aim: str = ""
    plot: Path | None = None
    resamples: int = RESAMPLES
    seed: int = 0


def calibrate(order: FitOrder, settings: Settings) -> Fit:
    """Fit a calibration on a labelled run and write it.

    Raises:
        OfflineJudgeError: as `open_labelled`; people gave one label only; a file cannot be
            written; matplotlib is missing where a plot is wanted.
    """
    _check(order)
    run = open_labelled(order.run_id, order.labels, settings)
    samples = [Labelled(s.question, s.label, _probability(s, run)) for s in run.samples]
    try:
        reading = fit(samples, order.kind, order.aim)
    except CannotFitError as error:
        raise DataError(
            f"Nothing can be fitted: {error}.",
            where=run.counts.source,
            remedy="Label samples that are right and samples that are wrong.",
        ) from None
    tried = cross_fit(samples, order.kind, order.aim)
    own = [row_of(sample, own_reading) for sample in run.samples]
    calibration = Calibration(
        reading=reading,
        optimised=order.aim or ("kappa" if order.kind == "threshold" else ""),
        n=len(samples),
        groups=run.questions,
        labels_sha256=run.counts.sha256,
        questions=tuple(sorted({s.question[:HASH_DIGITS] for s in run.samples})),
        judge=identity_of(run.manifest),
        rates=error_rates(tried.rows, run.questions, tried.reason),
        raw_rates=error_rates(own, run.questions),
    )
    report = _report(order, run, calibration, tried.rows, tried.reason)
    if order.plot is not None:
        title = f"{run.manifest.judge.name}, {run.manifest.method}: {len(samples)} samples"
        draw_reliability(order.plot, report.before, report.after, title)
    write_calibration(order.out, calibration)
    return report


def _probability(sample: JudgedSample, run: LabelledRun) -> float:
    found = sample.judgment.probability
    if found is None:
        raise DataError(
            "The run's verdicts carry no probabilities, so there is nothing to calibrate.",
            where=f"{run.manifest.run_id}, sample {sample.id}",
            remedy=f"Its engine `{run.manifest.judge.engine}` gives no label probabilities; "
            "judge with one that does.",
        )
    return found


def _report(
    order: FitOrder,
    run: LabelledRun,
    calibration: Calibration,
    tried: Sequence[Row],
    reason: str,
) -> Fit:
    again = {sample.id: row for sample, row in zip(run.samples, tried, strict=bool(tried))}

    def crossed(sample: JudgedSample) -> tuple[bool, float]:
        row = again[sample.id]
        return row.verdict, row.probability or 0.0

    def read(reading: Read) -> Figures:
        groups = grouped(run.samples, reading)
        return figures(groups, resamples=order.resamples, seed=order.seed)

    return Fit(
        run_id=run.manifest.run_id,
        labels=run.counts,
        calibration=calibration,
        before=_reliability(run.samples, own_reading),
        after=_reliability(run.samples, crossed) if again else None,
        raw=read(own_reading),
        calibrated=read(crossed) if again else None,
        reason=reason,
        warnings=tuple(_doubts(calibration)),
    )


def _doubts(calibration: Calibration) -> list[str]:
    found = []
    if calibration.n < FEW:
        found.append(
            f"Fitted on {calibration.n} samples of {calibration.groups} questions only: "
            "the fit may not hold for others."
        )
    if calibration.reading.slope is not None and calibration.reading.slope <= 0:
        found.append("The judge's probability falls where people say correct: the map turns it.")
    if len({value for _, value in calibration.reading.points}) == 1:
        found.append("The map is flat: the judge's probability tells nothing about these labels.")
    return found


def read_kind(name: str) -> Kind:
    """The kind of calibration of a name.

    Raises:
        UsageError: there is no such kind.
    """
    kinds: tuple[Kind, ...] = get_args(Kind)
    for kind in kinds:
        if kind == name:
            return kind
    raise _unknown("kind of calibration", name, kinds)


def _check(order: FitOrder) -> None:
    if order.aim and order.aim not in AIMS:
        raise _unknown("figure to be best by", order.aim, tuple(AIMS))
    if order.plot is not None:
        check_plot(order.plot)


def _unknown(what: str, given: str, known: Sequence[str]) -> UsageError:
    close = get_close_matches(given, known, n=1)
    hint = f"Did you mean `{close[0]}`?" if close else f"There are: {', '.join(known)}."
    return UsageError(f"There is no {what} `{given}`.", remedy=hint)


def _reliability(samples: Sequence[JudgedSample], reading: Read) -> Reliability:
    labels = [sample.label for sample in samples]
    return reliability(labels, [reading(sample)[1] or 0.0 for sample in samples])
