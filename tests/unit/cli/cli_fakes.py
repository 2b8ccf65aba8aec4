"""A stand-in for the API, and a way to call the command line against it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import offline_judge
from offline_judge.cli.main import main
from offline_judge.domain.events import AnyEvent, SampleFinished, SampleStarted
from offline_judge.domain.evidence import EvidenceState
from offline_judge.domain.judgment import Judgment, Outcome
from offline_judge.domain.run import (
    Agreement,
    DataSource,
    ModelIdentity,
    Parent,
    RunManifest,
    RunSummary,
)
from offline_judge.domain.sample import Sample

HOSTILE = "\x1b[2J[red]日本\u202e"


@dataclass(frozen=True)
class Row:
    id: str
    question: str = "Which capital?"
    response: str = "Astana"
    label: bool | None = None
    verdict: bool | None = True
    calibrated_verdict: bool | None = None
    probability: float | None = 0.75
    outcome: Outcome = Outcome.SCORED
    reason: str = ""
    searches: int = 3


@dataclass(frozen=True)
class View:
    manifest: RunManifest
    summary: RunSummary
    rows: tuple[Row, ...] = ()
    before: Row | None = None
    shortfalls: tuple[object, ...] = ()


@dataclass(frozen=True)
class OneSample:
    row: Row
    sample: Sample
    events: tuple[AnyEvent, ...]
    run: View
    parent: Parent | None = None
    before: Row | None = None


@dataclass(frozen=True)
class Listing:
    """What the list of runs holds of one."""

    id: str = "20260101-a"
    started: str = "2026-01-01T00:00:00Z"
    method: str = "sage"
    judge: str = "tiny"
    status: str = "completed"
    planned: int = 3
    finished: int = 3
    unscored: int = 1
    agreement: Agreement | None = None
    parent: Parent | None = None


@dataclass(frozen=True)
class Request:
    method: str
    data: Path
    mapping: dict[str, str]
    skip_bad: bool = False
    limit: int | None = None
    minutes: float | None = None
    options: dict[str, Any] = field(default_factory=dict)
    format: str | None = None
    responses: Path | None = None
    candidate: str | None = None
    calibration: Path | None = None
    fail_under: tuple[str, ...] = ()
    run_id: str = ""


@dataclass(frozen=True)
class Options:
    """How one response is judged."""

    options: dict[str, Any]
    calibration: Path | None


def manifest(
    run_id: str = "20260101-a", method: str = "sage", parent: Parent | None = None
) -> RunManifest:
    return RunManifest(
        parent=parent,
        run_id=run_id,
        created="2026-01-01T00:00:00Z",
        method=method,
        data=DataSource(path="/d.jsonl", sha256="0" * 64, format="jsonl", rows=3),
        judge=ModelIdentity(name="tiny", sha256="1" * 64, engine="scripted"),
    )


def summary(status: str = "completed", **more: Any) -> RunSummary:
    values: dict[str, Any] = {
        "run_id": "20260101-a",
        "status": status,
        "planned": 3,
        "outcomes": {"scored": 2, "unscored": 1},
        "reasons": {"off-menu": 1},
        "verdict_true": 1,
        "agreement": Agreement(n=2, accuracy=0.5, kappa=None, unscored=1),
        "distinct_queries": 2.5,
        "searches": 6,
    }
    return RunSummary(**{**values, **more})


def view(status: str = "completed", rows: Iterable[Row] = (Row("q1"),), **more: Any) -> View:
    return View(manifest(), summary(status, **more), tuple(rows))


def one_sample(text: str = "Astana", **reading: Any) -> OneSample:
    sample = Sample(id="q1", question=f"Which capital? {text}", response=text)
    judgment = Judgment(
        verdict=True,
        probability=0.75,
        rationale=text,
        evidence_state=EvidenceState.NONE_FOUND,
        **reading,
    )
    events: tuple[AnyEvent, ...] = (
        SampleStarted(sample_id="q1", sample=sample),
        SampleFinished(sample_id="q1", outcome=Outcome.SCORED, judgment=judgment),
    )
    return OneSample(Row("q1"), sample, events, view())


def answering(value: Any) -> Callable[..., Any]:
    """A function of any arguments that returns `value`, or raises it where it is an exception."""

    def function(*_: Any, **__: Any) -> Any:
        if isinstance(value, BaseException):
            raise value
        return value

    return function


class CommandLine:
    """Calls the program's entry point in this process, with a fake API behind it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        fake: Any = ModuleType("offline_judge.api")
        fake.RunRequest = Request
        fake.AskOptions = Options
        self.api = fake
        self._capsys = capsys
        monkeypatch.setitem(sys.modules, "offline_judge.api", self.api)
        monkeypatch.setattr(offline_judge, "api", self.api, raising=False)
        self.code: int | str | None = None
        self.out = self.err = ""

    def __call__(self, *arguments: str) -> CommandLine:
        with pytest.raises(SystemExit) as end:
            main(arguments)
        self.code = end.value.code
        self.out, self.err = self._capsys.readouterr()
        return self
