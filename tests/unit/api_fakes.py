"""What the tests of the API share: a data file, settings of a scripted judge, a listener."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from offline_judge.api import RunRequest
from offline_judge.domain.events import AnyEvent, SampleFinished
from offline_judge.domain.progress import Preflight, Progress
from offline_judge.settings import Settings, load_settings


class Ears:
    """A listener that remembers, and may act on an event."""

    def __init__(self, on: Callable[[AnyEvent], None] = lambda _event: None) -> None:
        self.events: list[AnyEvent] = []
        self.reports: list[Preflight] = []
        self.standings: list[Progress] = []
        self.phases: list[str] = []
        self._on = on

    def phase(self, phase: str, detail: str = "") -> None:
        self.phases.append(phase)

    def preflight(self, report: Preflight) -> None:
        self.reports.append(report)

    def event(self, event: AnyEvent) -> None:
        self.events.append(event)
        self._on(event)

    def progress(self, progress: Progress) -> None:
        self.standings.append(progress)

    def judged(self) -> list[str]:
        return [event.sample_id for event in self.events if isinstance(event, SampleFinished)]


def scripted_settings(folder: Path) -> Settings:
    """Settings that meet nobody's own files."""
    flags = {
        "judge": "scripted",
        "data_dir": str(folder / "data"),
        "cache_dir": str(folder / "cache"),
    }
    return load_settings(flags, environ={}, project_dir=folder, user_file=folder / "none")


def write_data(path: Path, count: int = 6, **changes: Any) -> Path:
    rows = [
        {
            "id": f"s{n}",
            "question": f"What is {n // 2}?",
            "response": f"It is {n}.",
            "label": n % 2 == 0,
            "source": "test",
        }
        for n in range(count)
    ]
    for row in rows:
        row.update(changes.get(str(row["id"]), {}))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def direct(data: Path, **changes: Any) -> RunRequest:
    return RunRequest(method="direct", data=data, **changes)
