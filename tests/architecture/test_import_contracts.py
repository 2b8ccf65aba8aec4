"""The import contracts name every room, and they bite."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "offline_judge"
# What the command line may import; `__main__` starts it.
OPEN_TO_CLI = {"__main__", "cli", "api", "domain", "errors", "outfiles", "settings"}


def _contracts() -> list[dict[str, Any]]:
    config = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    contracts: list[dict[str, Any]] = config["tool"]["importlinter"]["contracts"]
    return contracts


def _contract(kind: str, source: str = "") -> dict[str, Any]:
    found = [c for c in _contracts() if c["type"] == kind]
    (contract,) = [c for c in found if not source or c["source_modules"] == [source]]
    return contract


def _rooms(folder: Path) -> set[str]:
    modules = {path.stem for path in folder.glob("*.py")} - {"__init__"}
    return modules | {path.parent.name for path in folder.glob("*/__init__.py")}


def test_every_room_has_its_layer() -> None:
    contract = _contract("layers")
    layered = set(re.findall(r"\w+", " ".join(contract["layers"])))
    assert contract["exhaustive"] is True
    assert _rooms(PACKAGE) - layered == set()


def test_the_command_line_is_kept_from_every_other_room() -> None:
    contract = _contract("forbidden", "offline_judge.cli")
    forbidden = {name.split(".")[1] for name in contract["forbidden_modules"]}
    assert _rooms(PACKAGE) - OPEN_TO_CLI == forbidden


def test_the_terminal_ui_is_kept_from_what_the_command_line_is_kept_from() -> None:
    contract = _contract("forbidden", "offline_judge_tui")
    forbidden = {name.split(".")[1] for name in contract["forbidden_modules"]}
    assert _rooms(PACKAGE) - OPEN_TO_CLI | {"cli"} == forbidden


def test_every_family_of_methods_is_independent() -> None:
    homes = (PACKAGE / "methods").glob("*/method.py")
    families = {f"offline_judge.methods.{path.parent.name}" for path in homes}
    assert families
    assert families == set(_contract("independence")["modules"])


@pytest.mark.parametrize(
    ("room", "offence"),
    [
        ("../tui/offline_judge_tui/app.py", "import offline_judge.runs.store"),
        ("errors.py", "import offline_judge.settings"),
        ("cli/main.py", "import offline_judge.registry"),
        ("methods/direct/method.py", "import offline_judge.methods.sage.method"),
        ("unlisted_room.py", "import offline_judge.errors"),
    ],
)
def test_an_offence_is_found(tmp_path: Path, room: str, offence: str) -> None:
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(PACKAGE, tmp_path / "offline_judge", ignore=ignored)
    shutil.copytree(ROOT / "tui", tmp_path / "tui", ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    with (tmp_path / "offline_judge" / room).open("a") as file:
        file.write(f"\n{offence}\n")
    command = [str(Path(sys.executable).parent / "lint-imports"), "--no-cache"]
    env = {**os.environ, "PYTHONPATH": f"{tmp_path}:{tmp_path / 'tui'}"}
    done = subprocess.run(
        command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done.stdout + done.stderr
