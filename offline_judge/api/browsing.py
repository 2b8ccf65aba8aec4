"""Looking into runs and data files piece by piece, as a screen does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from offline_judge.api.views import RunRequest

if TYPE_CHECKING:
    from offline_judge.domain.events import AnyEvent
    from offline_judge.domain.message import SentPrompt
    from offline_judge.domain.pictures import RunFigures
    from offline_judge.domain.previews import Preview
    from offline_judge.domain.run import RunManifest
    from offline_judge.domain.run_rows import IndexRow, LogLine, RowQuery
    from offline_judge.settings import Settings


def preview(request: RunRequest, rows: int = 20) -> Preview:
    """What a run of this request would read: columns, first rows and samples, and every problem.

    Nothing is refused: what is wrong with the file stands in the answer.
    """
    from offline_judge import jobs
    from offline_judge.jobs.previews import preview

    data = jobs.DataFile(
        Path(request.data),
        request.mapping,
        skip_bad=True,
        form=request.format or "",
        responses=None if request.responses is None else Path(request.responses),
    )
    return preview(data, unanswered=bool(request.candidate), rows=rows)


def run_manifest(run_id: str, settings: Settings) -> RunManifest:
    """What shapes a run's judgments, without reading its trace.

    Raises:
        RunNotFoundError: no run has this id.
        StorageError: it is damaged.
    """
    from offline_judge import wiring

    return wiring.run_store(settings).open(run_id).manifest()


def run_holder(run_id: str, settings: Settings) -> int:
    """Pid of the process that works on a run; 0 where none does.

    Raises:
        RunNotFoundError: no run has this id.
    """
    from offline_judge import wiring

    holder = wiring.run_store(settings).open(run_id).holder()
    return holder.pid if holder is not None else 0


def index_run(
    run_id: str, settings: Settings, told: Callable[[int, int], bool] = lambda _done, _of: True
) -> bool:
    """Bring the index of a run up to date, so that `run_rows` answers at once.

    Args:
        run_id: An id, a prefix that only one run has, or `last`.
        settings: Where runs are.
        told: Takes bytes done and all of them, from time to time; false ends the work, which then
            goes on from there the next time.

    Returns:
        Whether it is up to date.

    Raises:
        RunNotFoundError: no run has this id.
        StorageError: the run's files are damaged or cannot be read.
    """
    from offline_judge import wiring

    return wiring.run_store(settings).open(run_id).index().update(told)


def run_rows(run_id: str, settings: Settings, query: RowQuery) -> tuple[Sequence[IndexRow], int]:
    """One page of a run's samples, and how many there are on all pages; raises as `index_run`."""
    from offline_judge import wiring

    return wiring.run_store(settings).open(run_id).index().page(query)


def neighbour(run_id: str, sample_id: str, settings: Settings, query: RowQuery) -> str | None:
    """The sample taken up next behind one, of those that `query` names; before it with `reverse`.

    None where there is none; raises as `index_run`.
    """
    from offline_judge import wiring

    return wiring.run_store(settings).open(run_id).index().neighbour(sample_id, query)


def run_figures(run_id: str, settings: Settings) -> RunFigures:
    """Agreement with the labels of the data, how reliable probabilities are, and throughput.

    From the run's index; raises as `index_run`.
    """
    from offline_judge import wiring
    from offline_judge.jobs.pictures import run_figures

    return run_figures(wiring.run_store(settings).open(run_id))


def run_log(run_id: str, settings: Settings, limit: int = 1000) -> Sequence[LogLine]:
    """Starts and ends of a run and of its engines, warnings, and samples without a verdict.

    The last ones, oldest first; raises as `index_run`.
    """
    from offline_judge import wiring

    return wiring.run_store(settings).open(run_id).index().log(limit)


def log_line(event: AnyEvent) -> LogLine | None:
    """The line of `run_log` that an event of a run that goes on adds to it; None for no line."""
    from offline_judge.runs.index_rows import log_line

    return log_line(event)


def call_prompt(
    run_id: str, events: Sequence[AnyEvent], number: int, settings: Settings
) -> SentPrompt:
    """A prompt exactly as it was sent, and the raw answer.

    Args:
        run_id: The run.
        events: Of one sample, as `show` gives them.
        number: Which of them; a `call_finished`.
        settings: Where runs are.

    Raises:
        RunNotFoundError: no run has this id.
        TraceError: the trace does not hold all of the prompt.
        StorageError: the run's files are damaged.
    """
    from offline_judge import wiring
    from offline_judge.jobs.prompts import sent_prompt

    return sent_prompt(wiring.run_store(settings).open(run_id), events, number)
