"""What the tests of studies share: a small search, a labelled file, settings, a listener."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

from offline_judge.datasets.readers import read_samples
from offline_judge.domain.events import AnyEvent, SampleFinished
from offline_judge.domain.evidence import Passage, SearchHit
from offline_judge.domain.judgment import Outcome
from offline_judge.domain.progress import Preflight, Progress
from offline_judge.jobs.orders import Limits
from offline_judge.runs.reader import read_events
from offline_judge.settings import Settings, load_settings
from offline_judge.studies.conditions import SAGE_CONDITIONS, choose
from offline_judge.studies.conduct import Work
from offline_judge.studies.report import About, Material, StudyReport, make_report
from offline_judge.studies.scores import Score


class SmallSearch:
    """Finds passages whose text depends on the query alone; counts searches."""

    name: ClassVar[str] = "small"

    def __init__(self) -> None:
        self.searches = 0
        self.closed = 0

    def identity(self) -> dict[str, Any]:
        return {"name": self.name}

    async def search(self, query: str, *, limit: int, offset: int = 0) -> tuple[SearchHit, ...]:
        self.searches += 1
        found = []
        for rank in range(offset + 1, offset + limit + 1):
            name = f"p{len(query) % 7}-{rank}"
            passage = Passage(id=name, document_id=name, title="T", text=f"Text {name}.")
            found.append(SearchHit(rank=rank, score=1 / rank, passage=passage))
        return tuple(found)

    def close(self) -> None:
        self.closed += 1


class Ears:
    """A listener that remembers, and may act on an event."""

    def __init__(self, on: Callable[[AnyEvent], None] = lambda _event: None) -> None:
        self.events: list[AnyEvent] = []
        self.phases: list[str] = []
        self.standings: list[Progress] = []
        self._on = on

    def phase(self, phase: str, detail: str = "") -> None:
        self.phases.append(phase)

    def preflight(self, report: Preflight) -> None:
        pass

    def event(self, event: AnyEvent) -> None:
        self.events.append(event)
        self._on(event)

    def progress(self, progress: Progress) -> None:
        self.standings.append(progress)

    def judged(self) -> list[str]:
        return [event.sample_id for event in self.events if isinstance(event, SampleFinished)]


def scripted_settings(folder: Path, **flags: Any) -> Settings:
    """Settings that meet nobody's own files."""
    own = {
        "judge": "scripted",
        "embedder": "none",
        "data_dir": str(folder / "data"),
        "cache_dir": str(folder / "cache"),
    }
    return load_settings(
        {**own, **flags}, environ={}, project_dir=folder, user_file=folder / "none"
    )


def write_data(path: Path, questions: int = 4, **changes: Any) -> Path:
    """Two responses a question, the first of which is correct."""
    rows = [
        {
            "id": f"s{n}",
            "question": f"What is secret {n // 2}?",
            "response": f"It is hidden {n}.",
            "label": n % 2 == 0,
        }
        for n in range(2 * questions)
    ]
    for row in rows:
        row.update(changes.get(str(row["id"]), changes.get("every", {})))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def work_on(data: Path, *conditions: str, **limits: Any) -> Work:
    """What a study judges, under shipped conditions."""
    loaded = read_samples(data)
    chosen = choose(conditions, SAGE_CONDITIONS)
    return Work(loaded.samples, loaded.source, chosen, Limits(**limits))


def ended(run_id: str, settings: Settings) -> list[str]:
    """Ids of the samples of a run that came to a verdict or to none, in order, once an ending."""
    events = read_events(settings.runs_path / run_id, texts=False)
    return [
        event.sample_id
        for event in events
        if isinstance(event, SampleFinished) and event.outcome is not Outcome.CANCELLED
    ]


def score(condition: str, number: int, *, says: float | None, label: bool, **more: Any) -> Score:
    """A score of sample `number`; two samples a question; unscored where it says nothing."""
    values: dict[str, Any] = {
        "condition": condition,
        "sample": f"s{number}",
        "question": f"q{number // 2}",
        "label": label,
        "outcome": "unscored" if says is None else "scored",
        "probability": says,
        "verdict": None if says is None else says >= 0.5,
    }
    return Score(**{**values, **more})


LABELS = [True, False, True, True, False, False, True, False]


def scores(condition: str, right: int, **more: Any) -> list[Score]:
    """Eight samples of four questions, the first `right` of which are judged as people do."""
    return [
        score(condition, n, says=0.8 if label is (n < right) else 0.2, label=label, **more)
        for n, label in enumerate(LABELS)
    ]


def report(*parts: list[Score], **more: Any) -> StudyReport:
    return make_report(Material([one for part in parts for one in part], **more), About())
