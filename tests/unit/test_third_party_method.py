"""A method in a package of its own: found, run with its prompts, and named when it is broken."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from conftest import Dirs
from third_party import install

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Installed:
    """The package as installed, and the program in an interpreter that sees it."""

    package: Path
    folder: Path

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        paths = [str(ROOT), str(self.package.parent)]
        return subprocess.run(
            [sys.executable, "-m", "offline_judge", *arguments],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    def run(self, method: str = "louder", *more: str) -> subprocess.CompletedProcess[str]:
        return self("run", method, "--data", "data.jsonl", "--judge", "scripted", *more)


@pytest.fixture
def program(tmp_path: Path, isolated_dirs: Dirs) -> Installed:
    row = {"id": "q", "question": "What is it?", "response": "An answer", "label": True}
    (tmp_path / "data.jsonl").write_text(json.dumps(row) + "\n")
    site = tmp_path / "site"
    site.mkdir()
    return Installed(install(site), tmp_path)


def test_it_judges_with_its_own_prompts(program: Installed) -> None:
    done = program.run("louder", "-o", "marks=3", "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["summary"]["outcomes"] == {"scored": 1}
    shown = program("runs", "show", "last", "--json")
    manifest = json.loads(shown.stdout)["manifest"]
    assert manifest["options"] == {"marks": 3}
    assert "louder/shout" in manifest["prompts"]
    prompts = program("show", "last", "q", "--prompts")
    assert "WHAT IS IT?" in prompts.stdout


def test_a_misspelling_of_it_is_answered_with_it(program: Installed) -> None:
    done = program.run("luoder")
    assert done.returncode == 2
    assert "Did you mean `louder`?" in done.stderr
    assert "sage" in done.stderr


def test_its_prompts_can_be_overridden_like_shipped_ones(program: Installed) -> None:
    own = program.folder / "own/louder"
    own.mkdir(parents=True)
    (own / "shout.system.jinja").write_text("whisper\n")
    (program.folder / "offline-judge.toml").write_text('prompts_dir = "own"\n')
    assert program.run().returncode == 0
    (own / "whisper.system.jinja").write_text("whisper\n")
    assert "overrides no shipped one" in program.run().stderr


@pytest.mark.parametrize(
    ("source", "code", "told"),
    [
        ("1 / 0\n", 2, "ZeroDivisionError"),
        ("def (\n", 2, "SyntaxError"),
        ("import no_such_thing\n", 3, "no_such_thing"),
        ("OTHER = 1\n", 2, "METHOD"),
        ("class METHOD:\n    name = 'louder'\n", 2, "from_options"),
    ],
)
def test_a_broken_one_names_its_package(
    program: Installed, source: str, code: int, told: str
) -> None:
    (program.package / "shout.py").write_text(source)
    done = program.run()
    assert done.returncode == code
    assert "`louder` of the package `louder-judge`" in done.stderr
    assert told in done.stderr
    assert "Traceback" not in done.stderr


def test_options_it_trips_over_are_its_own_fault(program: Installed) -> None:
    done = program.run("louder", "-o", "marks=many")
    assert done.returncode == 2
    assert "of the package `louder-judge`" in done.stderr
    assert "ValueError" in done.stderr


def test_a_broken_one_is_in_nobody_elses_way(program: Installed) -> None:
    (program.package / "shout.py").write_text("1 / 0\n")
    assert program.run("direct").returncode == 0


def test_one_without_its_prompts_says_where_they_belong(program: Installed) -> None:
    for file in (program.package / "prompts").iterdir():
        file.unlink()
    (program.package / "prompts").rmdir()
    done = program.run()
    assert done.returncode == 2
    assert "louder_judge/prompts" in done.stderr


def test_one_that_fails_on_a_sample_does_not_end_the_run(program: Installed) -> None:
    path = program.package / "shout.py"
    path.write_text(path.read_text().replace("await context.judge.read(", "await None("))
    done = program.run("louder", "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["summary"]["outcomes"] == {"error": 1}
