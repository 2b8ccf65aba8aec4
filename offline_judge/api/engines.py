"""Engines in environments of their own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from offline_judge.environments.installing import Environment
    from offline_judge.settings import Settings


@dataclass(frozen=True)
class EngineView:
    """An engine's environment.

    Attributes:
        name: As `engine` is set to it.
        title: What it is.
        backend: The backend it holds.
        state: `installed`, `outdated`, `begun` or `absent`.
        version: Of what it holds.
        disk: Bytes it takes, roughly.
        folder: Where it is, or would be.
        details: What it said when it was installed, such as its devices.
    """

    name: str
    title: str
    backend: str
    state: str
    version: str
    disk: int
    folder: Path
    details: dict[str, Any]


def engines_list(settings: Settings) -> list[EngineView]:
    """All engines that can be installed, and how they stand."""
    from offline_judge.environments.installing import look
    from offline_judge.environments.recipes import RECIPES

    return [_view(look(_root(settings), name)) for name in RECIPES]


def engines_show(name: str, settings: Settings) -> EngineView:
    """One engine.

    Raises:
        UsageError: there is none of this name.
    """
    from offline_judge.environments.installing import look

    return _view(look(_root(settings), name))


def engines_install(
    name: str, settings: Settings, tell: Callable[[str], None], *, index: str = ""
) -> EngineView:
    """Make an engine's environment.

    Raises:
        UsageError: there is none of this name.
        StorageError: too little space.
        MissingError: a step failed, or what was installed does not work.
    """
    from offline_judge.environments.installing import install

    return _view(install(_root(settings), name, tell, index=index))


def engines_rm(name: str, settings: Settings) -> EngineView:
    """Take an engine's environment away; gives how it stood.

    Raises:
        UsageError: there is none of this name.
        MissingError: it is not installed.
    """
    from offline_judge.environments.installing import remove

    return _view(remove(_root(settings), name))


def _root(settings: Settings) -> Path:
    return settings.data_path / "engines"


def _view(found: Environment) -> EngineView:
    from offline_judge.environments.recipes import RECIPES

    recipe = RECIPES[found.name]
    return EngineView(
        name=found.name,
        title=recipe.title,
        backend=recipe.backend,
        state=found.state,
        version=found.version,
        disk=recipe.disk,
        folder=found.folder,
        details=found.details or {},
    )
