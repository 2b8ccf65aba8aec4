"""The readings of a run's judgments, as rows of its questions for the figures of agreement."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from offline_judge.domain.calibration import Calibration
from offline_judge.jobs.labelling import JudgedSample
from offline_judge.metrics.agreement import Row
from offline_judge.metrics.folds import fold_of_questions

Read = Callable[[JudgedSample], tuple[bool, float | None]]
"""Verdict and probability of a sample, in one reading."""


def own_reading(sample: JudgedSample) -> tuple[bool, float | None]:
    """The judge's own verdict and probability."""
    return sample.judgment.verdict, sample.judgment.probability


def calibrated_reading(calibration: Calibration) -> Read:
    """Verdict and probability as a calibration reads them."""

    def read(sample: JudgedSample) -> tuple[bool, float | None]:
        if sample.judgment.probability is None:
            return sample.judgment.verdict, None
        mapped = calibration.reading.map(sample.judgment.probability)
        return mapped >= calibration.reading.threshold, mapped

    return read


def row_of(sample: JudgedSample, reading: Read, fold: int = 0) -> Row:
    """A sample's row in one reading."""
    verdict, probability = reading(sample)
    return Row(sample.label, verdict, probability, fold)


def grouped(samples: Sequence[JudgedSample], reading: Read) -> list[list[Row]]:
    """The rows of each question, with the fold it belongs to."""
    folds = fold_of_questions(sample.question for sample in samples)
    groups: dict[str, list[Row]] = {}
    for sample in samples:
        row = row_of(sample, reading, folds[sample.question])
        groups.setdefault(sample.question, []).append(row)
    return list(groups.values())
