"""Finding the run that judged the same samples in the same way, so that a study goes on with it."""

from __future__ import annotations

from typing import Any

from offline_judge import wiring
from offline_judge.domain.run import RunManifest
from offline_judge.errors import StorageError
from offline_judge.runs.store import RunDirectory
from offline_judge.settings import Settings

_SHAPING = ("window", "seed")
_SAME = ("method", "options", "judge", "search", "prompts")
_NOT_OURS = ("parent", "candidate", "calibration")
"""Fields of a manifest that make a run another thing than a condition of a study."""


def find_run(wanted: RunManifest, settings: Settings) -> RunDirectory | None:
    """The newest run that judges what `wanted` judges, in the same way; None where there is none.

    Limits do not count: a study judges what is left.
    """
    store = wiring.run_store(settings)
    for run_id in reversed(store.ids()):
        directory = store.open(run_id)
        try:
            if _identity(directory.manifest()) == _identity(wanted):
                return directory
        except StorageError:
            continue  # damaged runs are no reason not to judge
    return None


def _identity(manifest: RunManifest) -> list[Any]:
    settings = [manifest.settings.get(name) for name in _SHAPING]
    data = manifest.data
    return [
        *(getattr(manifest, name) for name in _SAME),
        [data.sha256, data.format, data.mapping],
        data.responses.sha256 if data.responses else "",
        *(getattr(manifest, name, None) for name in _NOT_OURS),
        [None if value is None else value.value for value in settings],
    ]
