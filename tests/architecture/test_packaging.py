"""The wheel builds, holds its data files, and an installed copy finds them."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LOCATE = """
import importlib.util, pathlib, sys
sys.path.append({packages!r})
place = pathlib.Path(importlib.util.find_spec("offline_judge").origin)
assert {root!r} not in str(place), place
from offline_judge.weights.cards import load_cards
print(*sorted(load_cards()))
"""


def _run(*command: str, cwd: Path) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.packaging
def test_the_wheel_carries_its_data_and_an_install_of_it_finds_the_cards(tmp_path: Path) -> None:
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    _run(*pip, "wheel", "--no-deps", "--wheel-dir", str(tmp_path), str(ROOT), cwd=tmp_path)
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name.startswith("offline_llm_judge-")

    names = set(zipfile.ZipFile(wheel).namelist())
    cards = {path.name for path in (ROOT / "models/cards").glob("*.toml")}
    assert {f"offline_judge/cards/{card}" for card in cards} <= names
    prompts = {path.relative_to(ROOT).as_posix() for path in ROOT.glob("offline_judge/**/*.jinja")}
    assert prompts
    assert prompts <= names
    assert {"offline_judge/py.typed", "offline_judge/demo/samples.jsonl"} <= names
    assert not [name for name in names if name.startswith(("tests/", "scripts/", "models/"))]

    _run(sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "env"), cwd=tmp_path)
    python = str(tmp_path / "env/bin/python")
    _run(*pip, "--python", python, "install", "--no-deps", str(wheel), cwd=tmp_path)
    # The fresh environment borrows only the dependencies of this one, behind its own packages.
    packages = next(path for path in sys.path if path.endswith("site-packages"))
    found = _run(python, "-c", LOCATE.format(packages=packages, root=str(ROOT)), cwd=tmp_path)
    assert set(found.split()) == {Path(card).stem for card in cards}
