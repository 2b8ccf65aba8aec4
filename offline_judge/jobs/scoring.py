"""Scoring a run against people."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from offline_judge.calibration.files import read_calibration
from offline_judge.calibration.fitting import error_rates
from offline_judge.calibration.identity import check_fits
from offline_judge.domain.calibration import Calibration, ErrorRates
from offline_judge.domain.scores import Figures, Score
from offline_judge.errors import DataError
from offline_judge.jobs.labelling import LabelFile, LabelledRun, open_labelled
from offline_judge.jobs.readings import Read, calibrated_reading, grouped, own_reading, row_of
from offline_judge.metrics.bootstrap import RESAMPLES
from offline_judge.metrics.scoring import figures
from offline_judge.settings import Settings


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


def score(order: ScoreOrder, settings: Settings) -> Score:
    """How well a run agrees with people.

    Raises:
        OfflineJudgeError: as `open_labelled`; a calibration of another judge; labels held out of
            questions that are scored.
    """
    run = open_labelled(order.run_id, order.labels, settings)
    calibration, warnings = _calibration(order, run)
    held_out = _held_out(order, run, settings)
    # Error rates learnt on what is scored would give people's share by construction.
    fresh = calibration is not None and not _known_questions(calibration, run)

    def read(reading: Read, known: ErrorRates | None) -> Figures:
        rates, source = known if fresh else None, "calibration"
        if held_out is not None:
            rows = [row_of(sample, reading) for sample in held_out.samples]
            rates, source = error_rates(rows, held_out.questions), "held-out"
        return figures(
            grouped(run.samples, reading),
            rates,
            source if rates else "",
            resamples=order.resamples,
            seed=order.seed,
        )

    return Score(
        run_id=run.manifest.run_id,
        labels=run.counts,
        raw=read(own_reading, calibration.raw_rates if calibration else None),
        calibrated=read(calibrated_reading(calibration), calibration.rates)
        if calibration
        else None,
        warnings=warnings,
    )


def _calibration(order: ScoreOrder, run: LabelledRun) -> tuple[Calibration | None, tuple[str, ...]]:
    """What to read verdicts with, and what must be known of it."""
    calibration, warnings = run.manifest.calibration, tuple[str, ...]()
    if order.calibration is not None:
        calibration = read_calibration(order.calibration)
        warnings = check_fits(calibration, run.manifest)
    known = 0 if calibration is None else _known_questions(calibration, run)
    if known:
        warnings += (
            f"The calibration was fitted on {known} of these {run.questions} questions, so its "
            "figures flatter it. Error rates are cross-fitted instead of its own.",
        )
    return calibration, warnings


def _known_questions(calibration: Calibration, run: LabelledRun) -> int:
    """Questions scored that the calibration was fitted on."""
    return sum(calibration.fitted_on(question) for question in {s.question for s in run.samples})


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
