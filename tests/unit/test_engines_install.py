"""Engines in environments of their own: whole or not counted, with the words of what failed."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from offline_judge.environments import installing
from offline_judge.environments.installing import install, look, remove
from offline_judge.environments.recipes import RECIPES, Recipe, Step
from offline_judge.errors import DownloadError, MissingError, StorageError, UsageError
from offline_judge.settings import Settings
from offline_judge.weights.partial import PullLock
from offline_judge.wiring.environments import interpreter

NAME = "llama-vulkan"
CHECK = "import json, tinyengine as t; print(json.dumps({'version': t.VERSION, 'devices': []}))"


def wheel(folder: Path, version: str = "1.0", body: str = "VERSION = '1.0'\n") -> None:
    info = f"tinyengine-{version}.dist-info"
    with zipfile.ZipFile(folder / f"tinyengine-{version}-py3-none-any.whl", "w") as file:
        file.writestr("tinyengine.py", body)
        file.writestr(
            f"{info}/METADATA", f"Metadata-Version: 2.1\nName: tinyengine\nVersion: {version}\n"
        )
        file.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        file.writestr(f"{info}/RECORD", "")


Use = Callable[..., Recipe]


@pytest.fixture
def use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Use:
    """Puts a recipe of a wheel made here in the place of a shipped one."""
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    wheel(wheels)

    def put(
        check: str = CHECK, wanted: str = "tinyengine==1.0", disk: int = 1000, index: str = ""
    ) -> Recipe:
        from_here = ("--no-index", "--find-links", str(wheels))
        step = Step((wanted,), own_index=True) if index else Step((*from_here, wanted))
        made = replace(RECIPES[NAME], steps=(step,), check=check, index=index, disk=disk)
        monkeypatch.setattr(installing, "RECIPES", {NAME: made})
        return made

    return put


def silent(line: str) -> None:
    pass


def test_an_engine_is_installed_and_found_by_the_settings(tmp_path: Path, use: Use) -> None:
    use()
    lines: list[str] = []
    root = tmp_path / "engines"
    assert look(root, NAME).state == "absent"
    found = install(root, NAME, lines.append)
    assert (found.state, found.version) == ("installed", "1.0")
    assert any("tinyengine" in line for line in lines)
    settings = Settings(data_dir=str(tmp_path))
    assert interpreter(settings, NAME) == str(found.python)
    again: list[str] = []
    install(root, NAME, again.append)
    assert again == [f"{NAME} 1.0 is installed"]
    assert remove(root, NAME).state == "installed"
    assert look(root, NAME).state == "absent"
    assert interpreter(settings, NAME) == ""


def test_a_step_that_fails_is_told_in_its_words_and_does_not_count(
    tmp_path: Path, use: Use
) -> None:
    use(wanted="tinyengine==7.0")
    with pytest.raises(MissingError, match=r"(?s)could not be installed.*tinyengine==7\.0"):
        install(tmp_path, NAME, silent)
    assert look(tmp_path, NAME).state == "begun"
    use()
    lines: list[str] = []
    assert install(tmp_path, NAME, lines.append).state == "installed"
    assert f"{NAME} was begun: made anew" in lines


def test_an_engine_that_does_not_work_does_not_count(tmp_path: Path, use: Use) -> None:
    use(check="import tinyengine; raise SystemExit('no driver on this machine')")
    with pytest.raises(MissingError, match=r"does not work.*no driver on this machine"):
        install(tmp_path, NAME, silent)
    assert look(tmp_path, NAME).state == "begun"


def test_an_interrupted_making_does_not_count(tmp_path: Path, use: Use) -> None:
    use()

    def stop(line: str) -> None:
        if "tinyengine" in line:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        install(tmp_path, NAME, stop)
    assert look(tmp_path, NAME).state == "begun"


def test_an_engine_of_another_recipe_is_made_anew(tmp_path: Path, use: Use) -> None:
    use()
    install(tmp_path, NAME, silent)
    use(check=f"{CHECK} # looked at otherwise")
    assert look(tmp_path, NAME).state == "outdated"
    assert install(tmp_path, NAME, silent).state == "installed"


def test_two_do_not_make_the_same_one(tmp_path: Path, use: Use) -> None:
    use()
    lock = PullLock(tmp_path / f"{NAME}.lock", "it")
    with lock, pytest.raises(DownloadError, match="by process"):
        install(tmp_path, NAME, silent)


def test_a_full_disk_is_noticed_before_anything_is_begun(tmp_path: Path, use: Use) -> None:
    use(disk=10**18)
    with pytest.raises(StorageError, match="Not enough disk space"):
        install(tmp_path, NAME, silent)
    assert look(tmp_path, NAME).state == "absent"


def test_an_unknown_engine_is_told_with_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="llama-cuda"):
        look(tmp_path, "llama-tpu")


def test_what_is_not_here_cannot_be_taken_away(tmp_path: Path) -> None:
    with pytest.raises(MissingError, match="is not installed"):
        remove(tmp_path, NAME)


def test_a_damaged_marker_counts_as_none(tmp_path: Path, use: Use) -> None:
    use()
    found = install(tmp_path, NAME, silent)
    (found.folder / installing.MARKER).write_text("{", "utf-8")
    assert look(tmp_path, NAME).state == "begun"


def test_builds_for_a_gpu_come_from_their_own_index_alone() -> None:
    # The usual index has the same version without a GPU, which would be taken in silence.
    for name in ("llama-cuda", "llama-rocm", "llama-vulkan"):
        assert RECIPES[name].index_only
        assert RECIPES[name].index


def test_the_requirements_of_a_step_leave_out_what_they_shall(tmp_path: Path) -> None:
    listed = subprocess.run(
        [sys.executable, "-c", installing._REQUIREMENTS, "jinja2", "nothing"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert [line.lower()[:10] for line in listed] == ["markupsafe"]
    none = subprocess.run(
        [sys.executable, "-c", installing._REQUIREMENTS, "jinja2", "markupsafe"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert none == ""


def test_an_index_that_cannot_be_reached_is_told_as_such(tmp_path: Path, use: Use) -> None:
    # Nobody listens there; pip itself would end with a remark on versions.
    use(index="http://127.0.0.1:9/simple")
    with pytest.raises(MissingError, match=r"installed: 127\.0\.0\.1:9 cannot be reached\."):
        install(tmp_path, NAME, silent)
