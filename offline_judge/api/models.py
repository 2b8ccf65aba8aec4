"""Model cards and their weights."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from offline_judge.api.views import ModelView

if TYPE_CHECKING:
    from offline_judge.settings import Settings
    from offline_judge.weights.cards import ModelCard
    from offline_judge.weights.fit import Fit
    from offline_judge.weights.store import PullProgress, VerifyReport


def models_list(settings: Settings) -> list[ModelView]:
    """All model cards, by name.

    Raises:
        SettingsError: a card of the user's own cannot be read.
    """
    from offline_judge import wiring
    from offline_judge.weights.cards import load_cards

    return [_model(card, settings) for card in load_cards(wiring.cards_path(settings)).values()]


def models_show(name: str, settings: Settings) -> ModelView:
    """One model card.

    Raises:
        MissingModelError: no card has this name.
    """
    from offline_judge import wiring

    return _model(wiring.model_card(name, settings), settings)


def models_fit(name: str, settings: Settings, slots: int) -> Fit:
    """Whether a model fits the memory that is free now, with so many slots of the window set.

    Raises:
        MissingModelError: no card has this name.
    """
    from offline_judge.weights.fit import fit

    view = models_show(name, settings)
    return fit(view.card, view.path, window=settings.window, slots=slots)


def models_pull(
    name: str, settings: Settings, progress: Callable[[PullProgress], None] | None = None
) -> Path:
    """Fetch a model's weights, or complete them; returns the path of the first file.

    Raises:
        MissingModelError: no card has this name.
        WeightsError: no source gave what the card promises.
        StorageError: too little space, or a file cannot be written.
    """
    from offline_judge import wiring

    return wiring.model_store(settings).pull(wiring.model_card(name, settings), progress)


def models_verify(
    name: str, settings: Settings, progress: Callable[[PullProgress], None] | None = None
) -> VerifyReport:
    """Read a model's files anew and compare size and hash with its card.

    Raises:
        MissingModelError: no card has this name.
        StorageError: a file cannot be read.
    """
    from offline_judge import wiring

    return wiring.model_store(settings).verify(wiring.model_card(name, settings), progress)


def _model(card: ModelCard, settings: Settings) -> ModelView:
    from offline_judge import wiring

    store = wiring.model_store(settings)
    state = store.state(card)
    return ModelView(card, state, store.location(card) if state == "present" else None)
