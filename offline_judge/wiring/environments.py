"""Environments of their own, which hold engines that cannot share this one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from offline_judge.environments.installing import look
from offline_judge.environments.recipes import RECIPES
from offline_judge.settings import Settings

ENVIRONMENTS: Mapping[str, str] = {name: recipe.backend for name, recipe in RECIPES.items()}
"""Name of an environment to the backend that it holds."""


def interpreter(settings: Settings, name: str) -> str:
    """The Python of an installed environment; "" where it is not installed.

    One that another recipe made is used as it is; `engines list` tells of it.
    """
    found = look(settings.data_path / "engines", name)
    return str(found.python) if found.state in ("installed", "outdated") else ""


def for_gpu(python: str) -> bool:
    """Whether an interpreter is that of an environment which is made for GPUs."""
    recipe = RECIPES.get(Path(python).parent.parent.name) if python else None
    return recipe is not None and recipe.gpu
