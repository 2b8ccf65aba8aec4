"""Runs in a process of their own: the same command, found again, and errors brought back."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import Dirs

from offline_judge import api
from offline_judge.errors import InterruptedRunError, RunNotFoundError, StartError
from offline_judge.settings import Settings, load_settings

PATIENCE_S = 30.0


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "odd name's.jsonl"
    rows = [{"id": f"s{n}", "question": f"Who is {n}?", "response": "Me."} for n in range(4)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def settings(isolated_dirs: Dirs) -> Settings:
    return load_settings({"judge": "scripted", "cache": False, "window": 2048})


def _ended(run_id: str, settings: Settings) -> api.RunView:
    deadline = time.monotonic() + PATIENCE_S
    while api.run_holder(run_id, settings):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return api.load_run(run_id, settings)


def test_it_goes_on_by_itself_and_is_what_the_command_line_gives(
    data: Path, settings: Settings
) -> None:
    request = api.RunRequest("direct", data, limit=2, options={"rationale": False})
    started = api.start(request, settings)
    assert os.getsid(started.pid) == started.pid
    view = _ended(started.run_id, settings)
    assert view.summary.outcomes == {"scored": 2}
    assert view.manifest.settings["window"].value == 2048
    assert "scored" in started.log.read_text()
    words = api.command_line(request, settings)
    assert words == (
        *("env", "OFFLINE_JUDGE_WINDOW=2048", "offline-judge", "run", "direct"),
        *("--data", str(data), "--limit", "2"),
        *("-o", "rationale=false", "--judge", "scripted", "--no-cache"),
    )
    shell = shlex.join(words).replace("offline-judge", f"{sys.executable} -m offline_judge", 1)
    subprocess.run(shell, shell=True, check=True, capture_output=True)
    other = api.load_run("last", settings)
    assert other.manifest.run_id != started.run_id
    assert (
        other.manifest.model_copy(
            update={"run_id": started.run_id, "created": view.manifest.created}
        )
        == view.manifest
    )


def test_it_is_resumed_by_itself(data: Path, settings: Settings) -> None:
    request = api.RunRequest("direct", data, limit=1)
    run_id = _ended(api.start(request, settings).run_id, settings).manifest.run_id
    started = api.start_resume(run_id[:-2], settings, limit=3)
    assert started.run_id == run_id
    assert _ended(run_id, settings).summary.outcomes == {"scored": 3}
    with pytest.raises(RunNotFoundError):
        api.start_resume("2020", settings)


def test_what_keeps_it_from_beginning_comes_back_as_it_was_told(
    tmp_path: Path, settings: Settings
) -> None:
    with pytest.raises(StartError) as caught:
        api.start(api.RunRequest("direct", tmp_path / "absent.jsonl"), settings)
    assert caught.value.exit_code == 2
    assert "absent.jsonl" in caught.value.where
    assert not caught.value.message.startswith("error")
    assert api.list_runs(settings) == []


def test_a_start_that_is_given_up_leaves_no_process(data: Path, settings: Settings) -> None:
    seen: list[str] = []

    def waiting(said: str) -> bool:
        seen.append(said)
        return False

    with pytest.raises(InterruptedRunError):
        api.start(api.RunRequest("direct", data), settings, waiting)
    assert len(seen) == 1
    assert api.list_runs(settings) == []


def test_settings_without_a_flag_stand_in_front_as_variables(
    data: Path, isolated_dirs: Dirs
) -> None:
    settings = load_settings({"embedder": "none", "offline": True, "data_dir": "d"})
    request = api.RunRequest(
        "sage", data, mapping={"a b": "question"}, skip_bad=True, fail_under=("kappa=0.5",)
    )
    words = api.command_line(request, settings)
    assert words[:5] == ("env", "OFFLINE_JUDGE_EMBEDDER=none", "offline-judge", "--data-dir", "d")
    assert words[7:] == (
        *("--data", str(data), "--map", "a b=question", "--skip-bad"),
        *("--fail-under", "kappa=0.5", "--offline"),
    )
