"""Scoring a run against people, and fitting a calibration on what they said of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import get_args

from offline_judge.calibration.files import read_calibration, write_calibration
from offline_judge.calibration.fitting import CannotFitError, Labelled, cross_fit, error_rates, fit
from offline_judge.calibration.identity import check_fits, identity_of
from offline_judge.calibration.plot import check_plot, draw_reliability
from offline_judge.calibration.thresholds import AIMS
from offline_judge.domain.calibration import Calibration, ErrorRates, Kind
from offline_judge.domain.scores import Figures, Fit, Reliability, Score
from offline_judge.errors import DataError, UsageError
from offline_judge.jobs.labelling import JudgedSample, LabelFile, LabelledRun, open_labelled
from offline_judge.metrics.agreement import Row
from offline_judge.metrics.bootstrap import RESAMPLES
from offline_judge.metrics.folds import fold_of_questions
from offline_judge.metrics.reliability import reliability
from offline_judge.metrics.scoring import figures
from offline_judge.settings import Settings

FEW = 50
"""With fewer labelled samples than this a fit is warned about."""


@dataclass(frozen=True)
class ScoreOrder:
    """What to score, and against what.

    Attributes:
        run_id: An id, a prefix that only one run has, or `last`.
        labels: What people said; None takes the labels of the run's data.
        held_out: Labels of other samples of the run, to learn the judge's error rates from.
        calibration: A calibration file to read the verdicts with; None takes the run's own.
        resamples: Of the bootstrap.
        seed: Of the bootstrap.
    """

    run_id: str
    labels: LabelFile | None = None
    held_out: LabelFile | None = None
    calibration: Path | None = None
    resamples: int = RESAMPLES
    seed: int = 0


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


Read = Callable[[JudgedSample], tuple[bool, float]]
"""Verdict and probability of a sample, in one reading."""


def score(order: ScoreOrder, settings: Settings) -> Score:
    """How well a run agrees with people.

    Raises:
        OfflineJudgeError: as `open_labelled`; a calibration of another judge; labels held out of
            questions that are scored.
    """
    run = open_labelled(order.run_id, order.labels, settings)
    calibration, warnings = _calibration(order, run)
    held_out = _held_out(order, run, settings)
    # Error rates learnt on these very labels would give people's share by construction.
    fresh = calibration is not None and calibration.labels_sha256 != run.counts.sha256

    def read(reading: Read, known: ErrorRates | None) -> Figures:
        rates, source = known if fresh else None, "calibration"
        if held_out is not None:
            rows = [_row(sample, reading, 0) for sample in held_out.samples]
            rates, source = error_rates(rows, held_out.questions), "held-out"
        return figures(
            _groups(run.samples, reading),
            rates,
            source if rates else "",
            resamples=order.resamples,
            seed=order.seed,
        )

    return Score(
        run_id=run.manifest.run_id,
        labels=run.counts,
        raw=read(_own, calibration.raw_rates if calibration else None),
        calibrated=read(_by(calibration), calibration.rates) if calibration else None,
        warnings=warnings,
    )


def calibrate(order: FitOrder, settings: Settings) -> Fit:
    """Fit a calibration on a labelled run and write it.

    Raises:
        OfflineJudgeError: as `open_labelled`; people gave one label only; a file cannot be
            written; matplotlib is missing where a plot is wanted.
    """
    _check(order)
    run = open_labelled(order.run_id, order.labels, settings)
    samples = [Labelled(s.question, s.label, s.judgment.probability) for s in run.samples]
    try:
        reading = fit(samples, order.kind, order.aim)
    except CannotFitError as error:
        raise DataError(
            f"Nothing can be fitted: {error}.",
            where=run.counts.source,
            remedy="Label samples that are right and samples that are wrong.",
        ) from None
    tried = cross_fit(samples, order.kind, order.aim)
    own = [_row(sample, _own, 0) for sample in run.samples]
    calibration = Calibration(
        reading=reading,
        optimised=order.aim or ("kappa" if order.kind == "threshold" else ""),
        n=len(samples),
        groups=run.questions,
        labels_sha256=run.counts.sha256,
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
        groups = _groups(run.samples, reading)
        return figures(groups, resamples=order.resamples, seed=order.seed)

    return Fit(
        run_id=run.manifest.run_id,
        labels=run.counts,
        calibration=calibration,
        before=_reliability(run.samples, _own),
        after=_reliability(run.samples, crossed) if again else None,
        raw=read(_own),
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


def _calibration(order: ScoreOrder, run: LabelledRun) -> tuple[Calibration | None, tuple[str, ...]]:
    """What to read verdicts with, and what must be known of it."""
    calibration, warnings = run.manifest.calibration, tuple[str, ...]()
    if order.calibration is not None:
        calibration = read_calibration(order.calibration)
        warnings = check_fits(calibration, run.manifest)
    if calibration is not None and calibration.labels_sha256 == run.counts.sha256:
        warnings += (
            "The calibration was fitted on these very labels: its figures flatter it. Error "
            "rates are cross-fitted instead of its own.",
        )
    return calibration, warnings


def _held_out(order: ScoreOrder, run: LabelledRun, settings: Settings) -> LabelledRun | None:
    if order.held_out is None:
        return None
    held_out = open_labelled(order.run_id, order.held_out, settings)
    both = {s.question for s in run.samples} & {s.question for s in held_out.samples}
    if both:
        raise DataError(
            f"{len(both)} questions of the labels held out are scored too.",
            where=held_out.counts.source,
            remedy="Error rates must come from other questions: take these out of one of them.",
        )
    return held_out


def _own(sample: JudgedSample) -> tuple[bool, float]:
    return sample.judgment.verdict, sample.judgment.probability


def _by(calibration: Calibration) -> Read:
    def read(sample: JudgedSample) -> tuple[bool, float]:
        mapped = calibration.reading.map(sample.judgment.probability)
        return mapped >= calibration.reading.threshold, mapped

    return read


def _row(sample: JudgedSample, reading: Read, fold: int) -> Row:
    verdict, probability = reading(sample)
    return Row(sample.label, verdict, probability, fold)


def _groups(samples: Sequence[JudgedSample], reading: Read) -> list[list[Row]]:
    folds = fold_of_questions(sample.question for sample in samples)
    groups: dict[str, list[Row]] = {}
    for sample in samples:
        row = _row(sample, reading, folds[sample.question])
        groups.setdefault(sample.question, []).append(row)
    return list(groups.values())


def _reliability(samples: Sequence[JudgedSample], reading: Read) -> Reliability:
    labels = [sample.label for sample in samples]
    return reliability(labels, [reading(sample)[1] for sample in samples])
