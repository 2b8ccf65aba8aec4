"""Runs of other processes: listing them, and asking one to stop, to pause or to go on."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from offline_judge import wiring
from offline_judge.domain.run import Agreement, RunManifest, RunSummary
from offline_judge.errors import (
    RunNotFoundError,
    StorageError,
    UsageError,
)
from offline_judge.metrics.agreement import accuracy_of, kappa_of
from offline_judge.metrics.bootstrap import Undefined
from offline_judge.runs.control_client import ControlClient
from offline_judge.runs.index_rows import RunBrief
from offline_judge.runs.reader import trace_files
from offline_judge.runs.store import RESULTS, RunDirectory
from offline_judge.settings import Settings

_log = logging.getLogger(__name__)

_MUCH = 32 * 1024**2
"""Bytes of a trace beyond which reading it takes long."""


@dataclass(frozen=True)
class Listed:
    """One run in the list of runs; `counted` says whether its samples were counted."""

    manifest: RunManifest
    status: str
    planned: int
    outcomes: dict[str, int]
    agreement: Agreement | None
    counted: bool = True


def listed(
    settings: Settings, passed_over: Collection[str] = (), *, quick: bool = False
) -> Iterator[Listed]:
    """All runs, newest first and each as soon as it is read, without those that cannot be read.

    Args:
        settings: Where runs are.
        passed_over: Whole ids of runs that need not be read.
        quick: Do not count the samples of a run where that takes long.

    Raises:
        StorageError: the folder of runs cannot be read.
    """
    store = wiring.run_store(settings)
    for run_id in reversed(store.ids()):
        if run_id in passed_over:
            continue
        try:
            yield listed_run(store.open(run_id), quick=quick)
        except (StorageError, RunNotFoundError) as error:
            _log.warning("run %s is left out of the list: %s", run_id, error)


def stop(run_id: str, settings: Settings, *, drain: bool) -> None:
    """Ask the process that works on a run to drain or to cancel it.

    Raises:
        RunNotFoundError: no run has this id.
        UsageError: no process works on it.
    """
    _ask(run_id, settings, ControlClient.drain if drain else ControlClient.cancel)


def pause(run_id: str, settings: Settings) -> None:
    """Ask the process that works on a run to begin nothing new; raises as `stop`."""
    _ask(run_id, settings, ControlClient.pause)


def go_on(run_id: str, settings: Settings) -> None:
    """Ask the process that works on a run to end its pause; raises as `stop`."""
    _ask(run_id, settings, ControlClient.go_on)


def _ask(run_id: str, settings: Settings, what: Callable[[ControlClient], None]) -> None:
    directory = wiring.run_store(settings).open(run_id)
    client = ControlClient(settings.runtime_path, directory.run_id)
    try:
        what(client)
    except RunNotFoundError:
        holder = directory.holder()
        if holder is None:
            raise
        raise UsageError(
            f"Process {holder.pid} has run {directory.run_id} but does not listen: it is "
            "starting or ending.",
            remedy=f"Try again in a moment, or: kill -TERM {holder.pid}",
        ) from None


def listed_run(directory: RunDirectory, *, quick: bool = False) -> Listed:
    """By the summary as it lies there if nothing was recorded since, else by the index.

    Raises:
        StorageError: the run's files are damaged.
    """
    manifest, results = directory.manifest(), directory.file(RESULTS)
    traces = [path.stat().st_mtime_ns for path in trace_files(directory.path)]
    live = directory.holder() is not None
    found: RunSummary | None = None
    if traces and not live and results.exists() and results.stat().st_mtime_ns >= max(traces):
        found = directory.results()
    if found is not None:
        return Listed(manifest, found.status, found.planned, found.outcomes, found.agreement)
    standing = "running" if live else "interrupted"
    if quick and directory.index().behind() > _MUCH:
        return Listed(manifest, standing, 0, {}, None, counted=False)
    brief = directory.index().brief()
    # A process that has taken a run up again has not said so in the trace at once.
    status = standing if live else brief.ended or standing
    return Listed(manifest, status, brief.planned, brief.outcomes, _agreement(brief))


def _agreement(brief: RunBrief) -> Agreement | None:
    right, chance_corrected = accuracy_of(*brief.cells), kappa_of(*brief.cells)
    if isinstance(right, Undefined):
        return None
    kappa = None if isinstance(chance_corrected, Undefined) else chance_corrected
    return Agreement(n=sum(brief.cells), accuracy=right, kappa=kappa, unscored=brief.unscored)
