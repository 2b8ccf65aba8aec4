"""The README's example of the Python API runs as it stands there, and is as short as it says."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Dirs

from offline_judge import api
from offline_judge.settings import load_settings

ROOT = Path(__file__).resolve().parents[2]


def example() -> str:
    section = (ROOT / "README.md").read_text("utf-8").partition("## From Python\n")[2]
    found = re.search(r"```python\n(.*?)```", section, re.DOTALL)
    assert found, "the README has no example of the Python API"
    return found.group(1)


def test_it_has_at_most_ten_lines() -> None:
    assert len([line for line in example().splitlines() if line.strip()]) <= 10


def test_it_judges_the_rows_of_the_readmes_own_file(
    isolated_dirs: Dirs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = re.search(r"```json\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    assert rows
    (tmp_path / "answers.jsonl").write_text(rows.group(1))
    # What the example leaves to the installation: a scripted judge, and a corpus of one document.
    monkeypatch.setenv("OFFLINE_JUDGE_JUDGE", "scripted")
    monkeypatch.setenv("OFFLINE_JUDGE_SEARCH", "corpus:tiny")
    monkeypatch.setenv("OFFLINE_JUDGE_EMBEDDER", "none")
    document = {"id": "d", "title": "Kazakhstan", "text": "The capital of Kazakhstan is Astana."}
    (tmp_path / "documents.jsonl").write_text(json.dumps(document) + "\n")
    api.corpus_build("tiny", tmp_path / "documents.jsonl", load_settings())
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", example()],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    run_line, *judged = done.stdout.splitlines()
    assert "completed" in run_line
    assert "n=2" in run_line
    assert {line.split()[0] for line in judged} == {"q1", "q2"}
    assert all(line.split()[1] in ("True", "False") for line in judged)
