"""An evidence folder with a Chroma index, built once for all tests that damage or question it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from evidence_parts import INDEXED, build_index


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An evidence folder with vectors and an index that was closed in good order."""
    folder = tmp_path_factory.mktemp("built") / "evidence"
    build_index(folder, INDEXED)
    return folder


@pytest.fixture
def folder(built: Path, tmp_path: Path) -> Path:
    """A copy of it for one test."""
    return Path(shutil.copytree(built, tmp_path / "evidence"))
