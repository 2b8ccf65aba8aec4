"""What is set on this installation, by whom, and which folders that comes to."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from offline_judge.settings import Described, Settings


@dataclass(frozen=True)
class ConfigView:
    """All settings as they stand.

    Attributes:
        settings: Each with value, origin, environment variable and help.
        folders: What is kept there, to the folder; it need not exist yet.
        files: The files that settings are read from, the weaker one first, whether there or not.
        unknown_variables: Variables that look like settings and are none, to the one that may
            have been meant, or "".
    """

    settings: tuple[Described, ...]
    folders: Mapping[str, Path]
    files: tuple[Path, ...]
    unknown_variables: Mapping[str, str]


def config_show(settings: Settings) -> ConfigView:
    """What is set, and by whom. Nothing secret is read: the secret is a file, not a setting."""
    from offline_judge.settings import (
        PROJECT_FILE,
        describe,
        unknown_variables,
        user_settings_file,
    )

    folders = {
        "data": settings.data_path,
        "runs": settings.runs_path,
        "corpora": settings.corpora_path,
        "models": settings.models_path,
        "cache": settings.cache_path,
        "control sockets": settings.runtime_path,
    }
    given = {"model cards": settings.cards_dir, "prompts": settings.prompts_dir}
    folders |= {name: Path(folder) for name, folder in given.items() if folder}
    files = (user_settings_file(), Path.cwd() / PROJECT_FILE)
    return ConfigView(describe(settings), folders, files, unknown_variables())
