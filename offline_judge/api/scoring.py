"""How well a run agrees with people, and calibrations fitted on what they said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from offline_judge.domain.run import RunSummary
    from offline_judge.domain.scores import Fit, Score
    from offline_judge.jobs import LabelFile
    from offline_judge.metrics.gates import Gate, Shortfall
    from offline_judge.settings import Settings

RESAMPLES = 2000


@dataclass(frozen=True)
class LabelsRequest:
    """What people said, and of what.

    Attributes:
        run_id: An id, a prefix that only one run has, or `last`.
        labels: JSONL, CSV or TSV with columns `id` and `label`; None takes the labels of the
            run's own data.
        mapping: Column to field, `id` or `label`; several columns may be `label`, an annotator
            each.
        format: The form of a public set that the file has, such as `evouna`.
        skip_bad: Leave out rows that cannot be read, and labels of samples there are not.
        resamples: Of the bootstrap, which draws whole questions.
        seed: Of the bootstrap.
    """

    run_id: str
    labels: Path | None = None
    mapping: Mapping[str, str] = field(default_factory=dict)
    format: str | None = None
    skip_bad: bool = False
    resamples: int = RESAMPLES
    seed: int = 0


def score(
    request: LabelsRequest,
    settings: Settings,
    *,
    held_out: Path | None = None,
    calibration: Path | None = None,
) -> Score:
    """How well a run agrees with people, each figure with a 95 % interval or why it has none.

    The share called correct is corrected for the judge's error rates: those of labels held out
    where they are given, else those of the calibration, else cross-fitted ones (see
    `offline_judge.metrics.scoring`).

    Args:
        request: The run and the labels.
        settings: Where runs are.
        held_out: Labels of other samples of the run, on other questions, to learn the judge's
            error rates from; read as `request` says.
        calibration: A calibration file to read the verdicts with; None takes the run's own.

    Raises:
        RunNotFoundError: no run has this id.
        DataError: labels of unknown samples, of none of the run's, or none at all.
        RunChangedError: the calibration was fitted for another judge.
        StorageError: the run's files are damaged.
    """
    from offline_judge import jobs

    order = jobs.ScoreOrder(
        run_id=request.run_id,
        labels=_labels(request, request.labels),
        held_out=_labels(request, held_out),
        calibration=calibration,
        resamples=request.resamples,
        seed=request.seed,
    )
    return jobs.score(order, settings)


def calibrate(
    request: LabelsRequest,
    out: Path,
    settings: Settings,
    *,
    kind: str = "threshold",
    optimise: str | None = None,
    plot: Path | None = None,
) -> Fit:
    """Fit how the judge's probability is read, and write it to `out` as JSON.

    Args:
        request: The run and the labels.
        out: The calibration file, replaced whole.
        settings: Where runs are.
        kind: `threshold`, `isotonic` or `platt`.
        optimise: Figure the threshold shall be best by: `kappa`, `accuracy`, `macro_f1` or
            `share` (the share called correct nearest to people's). None means kappa for
            `threshold`, and leaves it at .5 for the others.
        plot: Reliability plot, .png or .svg.

    Raises:
        UsageError: no such kind or figure.
        DataError: as `score`, or people gave one label only.
        MissingDependencyError: matplotlib is not installed and a plot is wanted.
        StorageError: a file cannot be written.
    """
    from offline_judge import jobs

    order = jobs.FitOrder(
        run_id=request.run_id,
        out=out,
        labels=_labels(request, request.labels),
        kind=jobs.read_kind(kind),
        aim=optimise or "",
        plot=plot,
        resamples=request.resamples,
        seed=request.seed,
    )
    return jobs.calibrate(order, settings)


def read_gates(texts: Sequence[str]) -> tuple[Gate, ...]:
    """Read figures that must be reached, such as `kappa=0.6`.

    Raises:
        UsageError: not a pair, no such figure, or a value no figure can reach.
    """
    from offline_judge.metrics import gates

    return gates.read_gates(texts)


def score_shortfalls(gates: Sequence[Gate], score: Score) -> tuple[Shortfall, ...]:
    """Figures of a score that are not reached; the calibrated reading counts where there is one."""
    from offline_judge.metrics.gates import shortfalls

    labels = score.labels
    return shortfalls(gates, score, labels.scored / labels.labelled if labels.labelled else None)


def run_shortfalls(
    gates: Sequence[Gate], run_id: str, summary: RunSummary, settings: Settings
) -> tuple[Shortfall, ...]:
    """Figures that a run does not reach against the labels of its own data.

    Raises:
        StorageError: the run's files are damaged.
    """
    from offline_judge.errors import DataError
    from offline_judge.metrics.gates import SCORED, share_scored, shortfalls

    found, reason = None, ""
    try:
        if any(gate.name != SCORED for gate in gates):
            found = score(LabelsRequest(run_id), settings)
    except DataError as error:
        reason = error.message
    return shortfalls(gates, found, share_scored(summary.outcomes, summary.planned), reason)


def _labels(request: LabelsRequest, path: Path | None) -> LabelFile | None:
    from offline_judge import jobs

    if path is None:
        return None
    return jobs.LabelFile(Path(path), request.mapping, request.format or "", request.skip_bad)
