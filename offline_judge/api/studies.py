"""Comparisons of many conditions on one labelled file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from offline_judge.domain.costs import RunCosts
    from offline_judge.errors import StorageError
    from offline_judge.protocols import RunListener
    from offline_judge.settings import Settings
    from offline_judge.studies.report import StudyReport


@dataclass(frozen=True)
class StudyRequest:
    """What a study compares, and on what.

    Attributes:
        data: Labelled data file.
        mapping: Column to field, where the file names its columns otherwise.
        skip_bad: Leave rows out that cannot be read.
        format: Form of a public set; "" for the program's own columns.
        responses: File of responses, joined by id; None where the data file has them.
        labels: File of labels in place of those of the data file.
        conditions: Names of shipped conditions; all where none is named.
        more: Conditions of one's own, `NAME=METHOD:key=value,...`.
        options: For all conditions of `sage`, whose own options win.
        limit: Samples at most, in a fixed random order of questions.
        minutes: No further question is begun after this time.
        threshold_from: Scores of another study to fit thresholds on, `PATH[:N]`.
        gold: JSONL, CSV or TSV of the passages that hold the answers, of those in the corpus.
        out: Folder for report, figures, scores, costs and plot; None writes none.
    """

    data: Path
    mapping: Mapping[str, str] = field(default_factory=dict)
    skip_bad: bool = False
    format: str = ""
    responses: Path | None = None
    labels: Path | None = None
    conditions: tuple[str, ...] = ()
    more: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    limit: int | None = None
    minutes: float | None = None
    threshold_from: str = ""
    gold: Path | None = None
    out: Path | None = None


@dataclass(frozen=True)
class StudyView:
    """A report, and what became of writing it.

    Attributes:
        report: As data.
        markdown: For people.
        files: What was written.
        problem: Why there is no plot, where there is none.
        failure: Why it could not be written; the report is whole all the same.
    """

    report: StudyReport
    markdown: str
    files: tuple[Path, ...] = ()
    problem: str = ""
    failure: StorageError | None = None


def study_sage(
    request: StudyRequest, settings: Settings, listener: RunListener | None = None
) -> StudyView:
    """Compare `direct`, `reference`, `lexical`, `sage` and its ablations; goes on where it stopped.

    Each condition is a run of its own. The report's status tells how it ended: `completed`,
    `limit` or `stopped`. That its files cannot be written after all is told in the view.

    Raises:
        DataError: no sample has a label, or a file cannot be read.
        StorageError: the folder for its files cannot be made, or takes none.
        OfflineJudgeError: as `run`.
    """
    from offline_judge.jobs import Limits
    from offline_judge.studies.conditions import SAGE, SAGE_CONDITIONS, gather
    from offline_judge.studies.study import Question, study

    asked = Question(
        data=Path(request.data),
        conditions=gather(
            SAGE_CONDITIONS, request.conditions, request.more, method=SAGE, options=request.options
        ),
        mapping={name: column for column, name in request.mapping.items()},
        skip_bad=request.skip_bad,
        form=request.format,
        responses=request.responses,
        labels=request.labels,
        gold=request.gold,
        threshold_from=request.threshold_from,
        limits=Limits(request.limit, request.minutes),
        out=request.out,
    )
    return _view(study(asked, settings, listener), request.out)


def study_report(path: Path, *, threshold_from: str = "", out: Path | None = None) -> StudyView:
    """The report on the scores of an earlier study, without its runs.

    That its files cannot be written is told in the view.

    Args:
        path: The folder that study wrote, or its `scores.csv`.
        threshold_from: Scores of another study to fit thresholds on, `PATH[:N]`.
        out: As `StudyRequest.out`.

    Raises:
        UsageError: there are no scores.
        DataError: they cannot be read.
    """
    from offline_judge.studies.study import report_again

    return _view(report_again(Path(path), threshold_from), out)


def run_costs(run_id: str, settings: Settings) -> RunCosts:
    """Where the time of a run goes: calls, tokens and seconds by stage.

    Raises:
        RunNotFoundError: no run has this id.
        StorageError: the run's files are damaged.
    """
    from offline_judge import wiring
    from offline_judge.runs.costs import fold_costs
    from offline_judge.runs.reader import read_events

    return fold_costs(read_events(wiring.run_store(settings).open(run_id).path, texts=False))


def _view(answer: Any, out: Path | None) -> StudyView:
    from offline_judge.errors import StorageError
    from offline_judge.studies.markdown import to_markdown
    from offline_judge.studies.writing import write_study

    view = StudyView(answer.report, to_markdown(answer.report))
    if out is None:
        return view
    try:
        files, problem = write_study(answer, out)
    except StorageError as error:  # hours of judging are worth more than the files
        return replace(view, failure=error)
    return replace(view, files=tuple(files), problem=problem)
