"""What a study leaves in a folder: report, figures, scores and costs, and a plot."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

from offline_judge.domain.base import Frozen
from offline_judge.errors import MissingDependencyError, StorageError
from offline_judge.outfiles import make_output_folder, write_output
from offline_judge.studies.costs import write_costs
from offline_judge.studies.markdown import to_markdown
from offline_judge.studies.plot import draw
from offline_judge.studies.report import StudyReport
from offline_judge.studies.scores import write_scores
from offline_judge.studies.study import COSTS, REPORT, Answer
from offline_judge.studies.thresholds import SCORES

_FIGURES, _TEXT = "figures.csv", "report.md"


def write_study(answer: Answer, folder: Path) -> tuple[list[Path], str]:
    """Write everything; earlier files of the same names are replaced.

    Returns:
        The files, and why there is no plot where there is none.

    Raises:
        StorageError: the folder cannot be written to.
    """
    report = answer.report
    texts = {
        _TEXT: to_markdown(report),
        _FIGURES: figures_csv(report),
        SCORES: write_scores(answer.scores),
        REPORT: as_json(report) + "\n",
    }
    if answer.costs:
        texts[COSTS] = write_costs(answer.costs)
    make_output_folder(folder)
    for name, text in texts.items():
        write_output(folder / name, [text])
    written = [folder / name for name in texts]
    try:
        return [*written, *draw(report, folder)], ""
    except MissingDependencyError as error:
        return written, str(error)
    except OSError as error:
        raise StorageError(f"Cannot write: {error.strerror}", where=str(folder)) from error


def as_json(report: Frozen) -> str:
    """Strict JSON."""
    return json.dumps(report.model_dump(mode="json"), indent=2, allow_nan=False)


def figures_csv(report: StudyReport) -> str:
    """One row a figure, for other programs."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    columns = ("condition", "against", "reading", "threshold", "figure", "value", "low", "high")
    writer.writerow([*columns, "n", "questions", "unscored", "reason"])
    for one in report.figures:
        for name, found in one.figures.items():
            place = [one.condition, "", one.reading, one.threshold, name]
            ends = [found.value, found.low, found.high]
            writer.writerow([*place, *ends, one.n, found.groups, one.unscored, found.reason])
    for pair in report.differences:
        found = pair.interval
        threshold = report.thresholds.get(pair.first) if pair.reading == "fitted" else None
        place = [pair.first, pair.second, pair.reading, threshold, "kappa"]
        ends = [found.value, found.low, found.high]
        writer.writerow([*place, *ends, found.n // 2, found.groups, "", found.reason])
    return text.getvalue()
