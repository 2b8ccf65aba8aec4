"""What this installation has: stores, cards, secret, versions, settings as recorded."""

from __future__ import annotations

import os
import platform
import secrets
from contextlib import suppress
from dataclasses import fields, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from offline_judge.domain.run import SettingValue
from offline_judge.errors import StorageError
from offline_judge.runs.store import RunStore
from offline_judge.settings import VERSION, Settings
from offline_judge.weights.adding import Shelf
from offline_judge.weights.cards import ModelCard, find_card, load_cards
from offline_judge.weights.licences import LicenceBook
from offline_judge.weights.store import ModelStore

SCRIPTED = "scripted"
_SECRET_BYTES = 32
_PACKAGES = ("xllamacpp", "tantivy", "pydantic", "jinja2")


def settled(settings: Settings) -> Settings:
    """The settings with absolute paths, which mean the same wherever a run is resumed.

    Several servers are given a lane each at least: with fewer some would never be asked.
    """
    kind, _, script = settings.judge.partition(":")
    changes: dict[str, Any] = {
        name: str(Path(value).absolute())
        for name in ("prompts_dir", "cards_dir", "adapter")
        if (value := getattr(settings, name))
    }
    if kind == SCRIPTED and script:
        changes["judge"] = f"{SCRIPTED}:{Path(script).absolute()}"
    elif (servers := settings.judge.count(",") + 1) > settings.lanes:
        changes["lanes"] = servers
    return replace(settings, **changes)


def run_store(settings: Settings) -> RunStore:
    """Where runs are."""
    return RunStore(settings.runs_path)


def model_store(settings: Settings) -> ModelStore:
    """The local store of weights."""
    return ModelStore(settings.models_path, settings.cache_path)


def model_card(name: str, settings: Settings) -> ModelCard:
    """The card of a name, with the files that were pinned for it where it names a repository only.

    Raises:
        MissingModelError: no card has this name.
    """
    card = find_card(name, _cards_path(settings), _added_path(settings))
    return model_store(settings).resolved(card)


def model_cards(settings: Settings) -> dict[str, ModelCard]:
    """All cards by name, as `model_card` gives each.

    Raises:
        SettingsError: a card of the user's own cannot be read.
    """
    store = model_store(settings)
    cards = load_cards(_cards_path(settings), _added_path(settings))
    return {name: store.resolved(card) for name, card in cards.items()}


def model_shelf(settings: Settings) -> Shelf:
    """Where cards of weights that the user added are."""
    return Shelf(_added_path(settings), model_store(settings))


def licence_book(settings: Settings) -> LicenceBook:
    """Which licences the user has accepted."""
    return LicenceBook(settings.data_path / "licences.json")


def _cards_path(settings: Settings) -> Path | None:
    return Path(settings.cards_dir) if settings.cards_dir else None


def _added_path(settings: Settings) -> Path:
    return settings.data_path / "cards"


def read_secret(settings: Settings) -> bytes:
    """The installation's secret, made at first use: 32 random bytes that only its user may read.

    Raises:
        StorageError: it cannot be read or made, or is damaged.
    """
    path = settings.data_path / "secret"
    try:
        if not path.exists():
            _make_secret(path)
        secret = path.read_bytes()
    except OSError as error:
        raise StorageError(
            f"Cannot read this installation's secret: {error.strerror}", where=str(path)
        ) from error
    if len(secret) != _SECRET_BYTES:
        raise StorageError(
            "This installation's secret is damaged.",
            where=str(path),
            remedy="Delete the file; a new one is made, and earlier completions are not reused.",
        )
    return secret


def recorded_settings(settings: Settings, **limits: float | None) -> dict[str, SettingValue]:
    """Every setting with its origin, and the limits of this run that were given."""
    recorded = {
        item.name: SettingValue(
            value=getattr(settings, item.name), origin=settings.origins.get(item.name, "default")
        )
        for item in fields(settings)
        if item.name != "origins"
    }
    given = {name: value for name, value in limits.items() if value is not None}
    return recorded | {name: SettingValue(value=v, origin="flag") for name, v in given.items()}


def versions() -> dict[str, str]:
    """Versions of this program and of what shapes judgments."""
    found = {"offline_judge": VERSION, "python": platform.python_version()}
    return found | {name: package_version(name) for name in _PACKAGES}


def package_version(package: str) -> str:
    """The installed version of a distribution, "" where there is none."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _make_secret(path: Path) -> None:
    """Write the secret under another name first, so that nobody ever reads half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"secret.{os.getpid()}.{secrets.token_hex(4)}")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(secrets.token_bytes(_SECRET_BYTES))
            file.flush()
            os.fsync(file.fileno())
        # A link fails where another process was first, and then its secret is the one.
        with suppress(FileExistsError):
            path.hardlink_to(part)
    finally:
        part.unlink()
