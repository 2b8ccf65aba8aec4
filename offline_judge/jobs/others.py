"""Runs of other processes: listing them, and asking one to stop."""

from __future__ import annotations

import logging
from collections.abc import Iterator

from offline_judge import wiring
from offline_judge.domain.run import RunManifest, RunSummary
from offline_judge.errors import (
    RunNotFoundError,
    StorageError,
    UsageError,
)
from offline_judge.runs.control_client import ControlClient
from offline_judge.runs.reader import trace_files
from offline_judge.runs.store import RESULTS, RunDirectory
from offline_judge.settings import Settings

_log = logging.getLogger(__name__)


def listed(settings: Settings) -> Iterator[tuple[RunManifest, RunSummary]]:
    """Manifest and summary of all runs, newest first, without those that cannot be read.

    Raises:
        StorageError: the folder of runs cannot be read.
    """
    store = wiring.run_store(settings)
    for run_id in reversed(store.ids()):
        directory = store.open(run_id)
        try:
            yield directory.manifest(), _summary(directory)
        except StorageError as error:
            _log.warning("run %s is left out of the list: %s", run_id, error)


def stop(run_id: str, settings: Settings, *, drain: bool) -> None:
    """Ask the process that works on a run to drain or to cancel it.

    Raises:
        RunNotFoundError: no run has this id.
        UsageError: no process works on it.
    """
    directory = wiring.run_store(settings).open(run_id)
    client = ControlClient(settings.runtime_path, directory.run_id)
    try:
        (client.drain if drain else client.cancel)()
    except RunNotFoundError:
        holder = directory.holder()
        if holder is None:
            raise
        raise UsageError(
            f"Process {holder.pid} has run {directory.run_id} but does not listen: it is "
            "starting or ending.",
            remedy=f"Try again in a moment, or: kill -TERM {holder.pid}",
        ) from None


def _summary(directory: RunDirectory) -> RunSummary:
    """The summary as it lies there if nothing was recorded since, else folded anew."""
    results = directory.file(RESULTS)
    traces = [path.stat().st_mtime_ns for path in trace_files(directory.path)]
    if (
        traces
        and not directory.holder()
        and results.exists()
        and results.stat().st_mtime_ns >= max(traces)
    ):
        found = directory.results()
        if found is not None:
            return found
    return directory.state().summary()
