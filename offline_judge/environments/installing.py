"""Makes an engine's environment so that it is either whole or does not count, and takes it away."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from offline_judge.environments.recipes import RECIPES, Recipe, Step
from offline_judge.errors import MissingError, UsageError
from offline_judge.weights.disk import check_space, read_json, write_json
from offline_judge.weights.partial import PullLock

MARKER = "engine.json"
_TAIL = 40
_SHOWN = 2
_UNREACHED = re.compile(
    r"Failed to establish a new connection|Name or service not known|name resolution|timed out"
)
_CHECK_S = 300
_REQUIREMENTS = """
import sys
from importlib.metadata import requires
from packaging.requirements import Requirement
name, left_out = sys.argv[1], set(sys.argv[2:])
for line in requires(name) or ():
    wanted = Requirement(line)
    extra = wanted.marker is not None and "extra" in str(wanted.marker)
    if extra or wanted.name.lower() in left_out:
        continue
    if wanted.marker is None or wanted.marker.evaluate():
        wanted.marker = None
        print(wanted)
"""

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Environment:
    """An environment as it stands.

    Attributes:
        name: Of its recipe.
        folder: Where it is.
        state: `installed`, `outdated` (made by another recipe), `begun` or `absent`.
        version: Of what it holds; "" where it is not installed.
        details: What its check said beside that.
    """

    name: str
    folder: Path
    state: str
    version: str = ""
    details: dict[str, Any] | None = None

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return python_of(self.folder)


def python_of(folder: Path) -> Path:
    """The interpreter of an environment in a folder."""
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def recipe_of(name: str) -> Recipe:
    """The recipe of a name.

    Raises:
        UsageError: there is none.
    """
    if name not in RECIPES:
        known = ", ".join(RECIPES)
        raise UsageError(f"No engine is called `{name}`.", remedy=f"There are: {known}.")
    return RECIPES[name]


def look(root: Path, name: str) -> Environment:
    """How an environment stands; starts nothing.

    Raises:
        UsageError: there is no recipe of this name.
    """
    recipe, folder = recipe_of(name), root / name
    marker = read_json(folder / MARKER)
    if not folder.exists():
        return Environment(name, folder, "absent")
    if not marker or not python_of(folder).exists():
        return Environment(name, folder, "begun")
    state = "installed" if marker.get("recipe") == recipe.sha256 else "outdated"
    return Environment(
        name, folder, state, str(marker.get("version", "")), dict(marker.get("details", {}))
    )


def install(root: Path, name: str, tell: Tell, *, index: str = "") -> Environment:
    """Make an environment, or make it anew where it is outdated or was only begun.

    Args:
        root: Where environments are.
        name: Of the recipe.
        tell: Told what is done, line by line. An exception it raises ends the making, as Ctrl-C
            does; what was begun does not count as installed.
        index: Package index in place of the recipe's own.

    Raises:
        UsageError: no such recipe.
        StorageError: too little space, or the folder cannot be written.
        DownloadError: another process makes the same one.
        MissingError: a step failed, or what was installed does not work; with its words.
    """
    recipe = recipe_of(name)
    root.mkdir(parents=True, exist_ok=True)
    with PullLock(root / f"{name}.lock", f"the engine {name}"):
        found = look(root, name)
        if found.state == "installed":
            tell(f"{name} {found.version} is installed")
            return found
        check_space(root, recipe.disk)
        if found.state != "absent":
            tell(f"{name} was {found.state}: made anew")
            _clear(found.folder)
        tell(f"environment {found.folder}")
        _run([sys.executable, "-m", "venv", str(found.folder)], recipe, tell, what="venv")
        for number, step in enumerate(recipe.steps, 1):
            tell(f"step {number} of {len(recipe.steps)}")
            _carry_out(step, recipe, found.folder, tell, index)
        details = _check(recipe, found.folder)
        write_json(
            found.folder / MARKER,
            {
                "name": name,
                "recipe": recipe.sha256,
                "version": details.pop("version", ""),
                "details": details,
                "python": platform.python_version(),
            },
        )
    return look(root, name)


def remove(root: Path, name: str) -> Environment:
    """Take an environment away; gives how it stood.

    Raises:
        UsageError: no such recipe.
        MissingError: it is not here.
    """
    found = look(root, name)
    if found.state == "absent":
        raise MissingError(f"The engine `{name}` is not installed.", where=str(found.folder))
    with PullLock(root / f"{name}.lock", f"the engine {name}"):
        _clear(found.folder)
    return found


def _clear(folder: Path) -> None:
    """Take a folder away; without its marker first, so that half of it never counts."""
    (folder / MARKER).unlink(missing_ok=True)
    if folder.is_symlink():
        folder.unlink()
    else:
        shutil.rmtree(folder)


def _carry_out(step: Step, recipe: Recipe, folder: Path, tell: Tell, index: str) -> None:
    python = str(python_of(folder))
    arguments = list(step.arguments)
    if step.requirements_of:
        found = subprocess.run(
            [python, "-c", _REQUIREMENTS, step.requirements_of, *step.without],
            capture_output=True,
            text=True,
            check=False,
        )
        if found.returncode:
            raise _failed(recipe, "reading its requirements", found.stderr.splitlines())
        arguments += found.stdout.split("\n")
    extra = (index or recipe.index) if step.own_index else ""
    flags = ["--index-url" if recipe.index_only else "--extra-index-url", extra] if extra else []
    command = [python, "-m", "pip", "install", "--retries", "2", *flags]
    _run(command + [part for part in arguments if part.strip()], recipe, tell, what="pip install")


def _run(command: list[str], recipe: Recipe, tell: Tell, *, what: str) -> None:
    """Run a step and pass its output on.

    Raises:
        MissingError: it failed, with its last lines.
    """
    tail: deque[str] = deque(maxlen=_TAIL)
    environ = {**os.environ, **recipe.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    if recipe.index_only:
        # What the user's own settings of pip add to the index would be looked at, too.
        environ |= {"PIP_CONFIG_FILE": os.devnull, "PIP_EXTRA_INDEX_URL": "", "PIP_FIND_LINKS": ""}
    # Paths of this program's own modules would shadow those of the environment.
    environ.pop("PYTHONPATH", None)
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=environ,
    )
    with process:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                tail.append(line.rstrip())
                tell(line.rstrip())
        except BaseException:
            process.terminate()
            raise
    if process.returncode:
        raise _failed(recipe, f"{what} ended with {process.returncode}", tail)


def _check(recipe: Recipe, folder: Path) -> dict[str, Any]:
    """What the engine says when it is first used."""
    environ = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    try:
        done = subprocess.run(
            [str(python_of(folder)), "-P", "-c", recipe.check],
            capture_output=True,
            text=True,
            timeout=_CHECK_S,
            env=environ,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise _failed(recipe, f"it did not import within {_CHECK_S} s", ()) from None
    try:
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        raise _failed(recipe, "it is installed and does not work", done.stderr.splitlines()) from (
            None
        )
    return found


def _failed(recipe: Recipe, what: str, lines: Iterable[str]) -> MissingError:
    said = [line.strip() for line in lines if line.strip()]
    unreached = next((line for line in said if _UNREACHED.search(line)), "")
    if unreached:
        # What follows it speaks of versions that are not to be had, which is not the cause.
        host = re.search(r"https?://([^/\s]+)", "\n".join(said))
        what = f"{host[1] if host else 'the package index'} cannot be reached"
        said = []
    return MissingError(
        f"The engine `{recipe.name}` could not be installed: {what}.",
        where="; ".join(said[-_SHOWN:]),
        remedy=f"What was begun does not count; mend that and: offline-judge engines install "
        f"{recipe.name}",
    )
