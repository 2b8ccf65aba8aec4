"""Runs and events for tests of the run directory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from offline_judge.domain.events import (
    AnyEvent,
    CallFinished,
    RunFinished,
    RunStarted,
    SampleFinished,
    SampleStarted,
    SearchFinished,
)
from offline_judge.domain.evidence import EvidenceState, Passage, SearchHit
from offline_judge.domain.judgment import Judgment, Outcome
from offline_judge.domain.message import Usage
from offline_judge.domain.run import DataSource, ModelIdentity, RunManifest
from offline_judge.domain.sample import Sample
from offline_judge.runs.store import RunDirectory, RunStore

ROOT = Path(__file__).resolve().parents[3]


def manifest(run_id: str = "20260101-000000-aaaa") -> RunManifest:
    return RunManifest(
        run_id=run_id,
        created="2026-01-01T00:00:00Z",
        method="sage",
        data=DataSource(path="data.jsonl", sha256="0" * 64, format="jsonl", rows=2),
        judge=ModelIdentity(name="scripted", sha256="1" * 64, engine="scripted"),
    )


def new_run(path: Path, run_id: str = "20260101-000000-aaaa") -> RunDirectory:
    return RunStore(path / "runs").create(manifest(run_id))


def sample(name: str = "a", label: bool | None = None) -> Sample:
    return Sample(id=name, question=f"question {name}", response=f"response {name}", label=label)


def started(name: str = "a", label: bool | None = None) -> SampleStarted:
    return SampleStarted(sample_id=name, sample=sample(name, label))


def finished(
    name: str = "a", outcome: Outcome = Outcome.SCORED, verdict: bool = True, **more: Any
) -> SampleFinished:
    judgment = None
    if outcome is Outcome.SCORED:
        state = EvidenceState.FOUND
        judgment = Judgment(
            verdict=verdict,
            probability=0.9 if verdict else 0.1,
            evidence_state=state,
            searches=3,
            distinct_queries=2,
            fallback_rounds=1,
            rationale_disagrees=True,
            dropped_citations=("E8", "E9"),
        )
    elif "reason" not in more:
        more["reason"] = "truncated"
    return SampleFinished(sample_id=name, outcome=outcome, judgment=judgment, seconds=1.5, **more)


def called(name: str = "a", **more: Any) -> CallFinished:
    usage = Usage(prompt_tokens=10, cached_tokens=4, completion_tokens=3)
    fields = {"stage": "verdict", "template": "verdict", "template_hash": "h", "prompt_hash": "p"}
    return CallFinished(sample_id=name, usage=usage, **{**fields, **more})


def searched(name: str = "a", text: str = "a passage", **more: Any) -> SearchFinished:
    passage = Passage(id="p", document_id="d", title="t", text=text)
    hits = (SearchHit(rank=1, score=2.5, passage=passage),)
    return SearchFinished(
        sample_id=name, **{"query": "q", "provider": "corpus", "hits": hits, **more}
    )


def record(directory: RunDirectory, *events: AnyEvent) -> None:
    with directory.writer() as writer:
        for event in events:
            writer.emit(event)


def whole_run() -> list[AnyEvent]:
    return [
        RunStarted(planned=2),
        started("a", True),
        started("b", False),
        called("a"),
        called("b", values={"text": "x" * 2000}),
        searched("a", "y" * 2000),
        finished("b", Outcome.ERROR, reason="ValueError"),
        finished("a"),
        RunFinished(status="completed"),
    ]


def child(script: str, *arguments: object, **more: Any) -> subprocess.Popen[str]:
    """A Python process that can import this program and these helpers."""
    path = f"{ROOT}:{Path(__file__).parent}"
    return subprocess.Popen(
        [sys.executable, "-c", script, *map(str, arguments)],
        env={"PYTHONPATH": path, "PATH": "/usr/bin:/bin"},
        stdout=subprocess.PIPE,
        stdin=subprocess.PIPE,
        text=True,
        **more,
    )
