"""Finds a run that judged the same samples in the same way, so that nothing is judged twice."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from offline_judge import wiring
from offline_judge.datasets.readers import read_samples
from offline_judge.domain.run import DataSource, RunManifest
from offline_judge.errors import StorageError
from offline_judge.protocols import RunListener
from offline_judge.runner.listeners import SafeListeners
from offline_judge.runs.store import RunDirectory
from offline_judge.settings import Settings

_SHAPING = ("window", "seed", "limit", "minutes")


@dataclass(frozen=True)
class Found:
    """A run, and whether it has judged everything."""

    run_id: str
    completed: bool


def find_same_run(
    method: str, data: Path, settings: Settings, listener: RunListener | None = None
) -> Found | None:
    """The newest run of all rows of `data` by `method` as the settings would judge it now.

    Same means: content of the data file and how it is read, responses, weights, engine, prompts,
    options, what is searched, window and seed. None where there is no such run, or where it has
    neither judged all nor can go on, because its data file has moved.

    Raises:
        OfflineJudgeError: the parts that would judge cannot be had.
    """
    settings = wiring.settled(settings)
    source = read_samples(data).source
    listeners = SafeListeners([listener])
    listeners.phase("reuse", f"looking for a run of `{method}` on these samples")
    with wiring.open_components(settings, method, {}, listeners) as parts:
        wanted: list[Any] = [
            method,
            _read_from(source),
            None,
            parts.identity,
            parts.prompts(),
            parts.method.options,
            parts.search.identity() if parts.search is not None else {},
            None,
            [settings.window, settings.seed, None, None],
        ]
    store = wiring.run_store(settings)
    for run_id in reversed(store.ids()):
        found = _look(store.open(run_id), wanted)
        if found is not None:
            return found
    return None


def _look(directory: RunDirectory, wanted: list[Any]) -> Found | None:
    try:
        recorded = directory.manifest()
        if _identity(recorded) != wanted:
            return None
        completed = directory.state().summary().status == "completed"
    except StorageError:
        return None  # damaged runs are no reason not to judge
    usable = completed or Path(recorded.data.path).exists()
    return Found(recorded.run_id, completed) if usable else None


def _read_from(source: DataSource) -> list[Any]:
    """The content of a data file and how it is read; paths do not count."""
    responses = source.responses.sha256 if source.responses is not None else None
    return [source.sha256, source.format, source.mapping, responses]


def _identity(recorded: RunManifest) -> list[Any]:
    values = [recorded.settings.get(name) for name in _SHAPING]
    return [
        recorded.method,
        _read_from(recorded.data),
        recorded.candidate,
        recorded.judge,
        recorded.prompts,
        recorded.options,
        recorded.search,
        recorded.calibration,
        [None if value is None else value.value for value in values],
    ]
