"""The place that every test of the terminal UI works in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Dirs
from ui_parts import Place, ended

import offline_judge
from offline_judge import api
from offline_judge.settings import Settings


@pytest.fixture
def place(tmp_path: Path, isolated_dirs: Dirs, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    monkeypatch.chdir(tmp_path)
    # Runs that are started apart must find the program, installed or not.
    monkeypatch.setenv("PYTHONPATH", str(Path(str(offline_judge.__file__)).parents[1]))
    found = Place(tmp_path)
    settings = found.settings()
    yield found
    # What a test has started apart ends with it.
    for run in api.run_listings(settings):
        if run.status == "running":
            api.cancel(run.id, settings)
            ended(run.id, settings)


@pytest.fixture
def settings(place: Place) -> Settings:
    return place.settings()
