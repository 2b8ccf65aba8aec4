"""The public names: few, lazy, and all there."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import offline_judge


def test_at_most_twenty_public_names() -> None:
    assert len(offline_judge.__all__) <= 20
    assert sorted(offline_judge.__all__) == offline_judge.__all__


@pytest.mark.parametrize("name", offline_judge.__all__)
def test_each_public_name_can_be_imported(name: str) -> None:
    assert getattr(offline_judge, name) is not None


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such"):
        _ = offline_judge.no_such


def test_the_version_is_the_one_in_the_project_file() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    assert offline_judge.__version__ == project["project"]["version"]


def test_importing_the_package_and_the_api_loads_nothing_heavy() -> None:
    code = (
        "import sys, offline_judge, offline_judge.api; offline_judge.evaluate;"
        "heavy = {'pydantic', 'httpx', 'jinja2', 'xllamacpp', 'tantivy', 'sklearn', 'asyncio'};"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
