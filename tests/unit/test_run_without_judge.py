"""A method that asks no judge: no engine, no weights, no child process; all else as in any run."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from api_fakes import Ears, scripted_settings

from offline_judge import api
from offline_judge.api import RunRequest
from offline_judge.domain.events import EngineStarted
from offline_judge.settings import Settings


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    # Its weights are not here, and the folder of models does not exist.
    return replace(scripted_settings(tmp_path), judge="qwen2.5-coder-1.5b-instruct")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    rows: list[dict[str, Any]] = [
        {"id": "a", "question": "?", "response": "It is Astana", "reference": ["Astana"]},
        {"id": "b", "question": "?", "response": "It is Almaty", "reference": ["Astana"]},
        {"id": "c", "question": "?", "response": "It is Astana"},
    ]
    path = tmp_path / "data.jsonl"
    path.write_text("".join(json.dumps(row | {"label": True}) + "\n" for row in rows))
    return path


def test_a_run_starts_no_child_and_needs_no_weights(
    settings: Settings, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def started(*_: Any, **__: Any) -> None:
        raise AssertionError("a process was started")

    for name in ("Popen", "run"):
        monkeypatch.setattr(subprocess, name, started)
    monkeypatch.setattr("asyncio.create_subprocess_exec", started)
    ears = Ears()
    view = api.run(RunRequest("lexical", data), settings, ears)
    assert view.summary.status == "completed"
    assert {row.id: row.verdict for row in view.rows} == {"a": True, "b": False, "c": None}
    assert view.summary.reasons == {"no-reference": 1}
    assert view.summary.calls == 0
    assert not [event for event in ears.events if isinstance(event, EngineStarted)]
    assert ears.reports[0].too_long == ()


def test_the_manifest_says_that_nothing_judges(settings: Settings, data: Path) -> None:
    manifest = api.run(RunRequest("lexical", data), settings).manifest
    assert (manifest.judge.name, manifest.judge.engine, manifest.judge.sha256) == (
        "none",
        "none",
        "",
    )
    assert manifest.prompts == {}


def test_it_resumes(settings: Settings, data: Path) -> None:
    run_id = api.run(RunRequest("lexical", data, limit=1), settings).manifest.run_id
    summary = api.resume(run_id, settings, limit=3).summary
    assert summary.status == "completed"
    assert summary.outcomes == {"scored": 2, "unscored": 1}


def test_the_judge_of_a_method_with_stages_is_still_wanted(settings: Settings, data: Path) -> None:
    from offline_judge.errors import MissingModelError

    with pytest.raises(MissingModelError):
        api.run(RunRequest("reference", data), settings)
