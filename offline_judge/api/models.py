"""Model cards and their weights."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from offline_judge.api.views import AddedModel, ModelView, RemovedModel

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

    return [_model(card, settings) for card in wiring.model_cards(settings).values()]


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
    from offline_judge import wiring

    card = wiring.model_card(name, settings)
    return _fit(card, _path(card, settings), settings, slots)


def models_pull(
    name: str,
    settings: Settings,
    progress: Callable[[PullProgress], None] | None = None,
    *,
    repin: bool = False,
    accept_licence: bool = False,
) -> Path:
    """Fetch a model's weights, or complete them; returns what an engine opens.

    Args:
        name: Name of the card.
        settings: Where things are.
        progress: Told how far it is.
        repin: Take the files that the hub has now, where others were pinned.
        accept_licence: The user accepts the licence; remembered.

    Raises:
        MissingModelError: no card has this name.
        LicenceError: its licence must be accepted first.
        WeightsError: no source gave what the card promises.
        StorageError: too little space, or a file cannot be written.
    """
    from offline_judge import wiring

    card, store = wiring.model_card(name, settings), wiring.model_store(settings)
    if repin or store.state(card) != "present":
        wiring.licence_book(settings).require(card, accept=accept_licence)
    return store.pull(card, progress, repin=repin)


def models_verify(
    name: str, settings: Settings, progress: Callable[[PullProgress], None] | None = None
) -> VerifyReport:
    """Read a model's files anew and compare size and hash with its card; asks nobody else.

    Raises:
        MissingModelError: no card has this name.
        StorageError: a file cannot be read.
    """
    from offline_judge import wiring

    return wiring.model_store(settings).verify(wiring.model_card(name, settings), progress)


def models_add(
    path: Path,
    settings: Settings,
    progress: Callable[[PullProgress], None] | None = None,
    *,
    said: dict[str, str | int] | None = None,
    keep: Literal["refer", "copy", "move"] = "refer",
) -> AddedModel:
    """Make a card of a GGUF file, all its parts, or a folder in Hugging Face format.

    Args:
        path: Where it is.
        settings: Where things are.
        progress: Told how far the hashing is.
        said: `name`, `window`, `family` and `licence`, where the user says them.
        keep: Use the files where they lie, or bring them into the store.

    Raises:
        UsageError: the name is taken, there is no model, or it does not say what it must.
        WeightsError: a file is damaged.
        StorageError: a file cannot be read or written.
    """
    from offline_judge import wiring
    from offline_judge.weights.adding import AddOptions

    values = {name: value for name, value in (said or {}).items() if value}
    options = AddOptions(
        name=str(values.get("name", "")),
        window=int(values.get("window", 0)),
        family=str(values.get("family", "")),
        licence=str(values.get("licence", "")),
        keep=keep,
    )
    shelf = wiring.model_shelf(settings)
    added = shelf.add(path, options, wiring.model_cards(settings), progress)
    return AddedModel(_model(added.card, settings), added.notes)


def models_removal(name: str, settings: Settings) -> RemovedModel:
    """What `models_rm` would take away.

    Raises:
        MissingModelError: no card has this name.
    """
    from offline_judge import wiring

    card = wiring.model_card(name, settings)
    found = wiring.model_store(settings).stored(card)
    added = wiring.model_shelf(settings).card_file(name).is_file()
    return RemovedModel(name, found.files, found.size, found.elsewhere, added)


def models_rm(name: str, settings: Settings) -> RemovedModel:
    """Delete a model's weights from the store, and its card where `models_add` made it.

    Files that are used where they lie stay.

    Raises:
        MissingModelError: no card has this name.
        UsageError: a run uses it now.
        StorageError: a file cannot be deleted.
    """
    from offline_judge import wiring
    from offline_judge.errors import RunLockedError

    for run in _runs_with(name, settings):
        raise RunLockedError(
            f"Run {run} uses {name} now.", where=name, remedy=f"offline-judge cancel {run}"
        )
    gone = models_removal(name, settings)
    wiring.model_store(settings).remove(wiring.model_card(name, settings))
    wiring.model_shelf(settings).remove(name)
    return gone


def _runs_with(name: str, settings: Settings) -> Iterator[str]:
    """Runs that a process works on now with this model as judge, candidate or embedder."""
    from offline_judge import wiring
    from offline_judge.errors import StorageError
    from offline_judge.runs.store import RunDirectory

    for run in wiring.run_store(settings).ids():
        directory = RunDirectory(settings.runs_path / run)
        if directory.holder() is None:
            continue
        try:
            manifest = directory.manifest()
        except StorageError:
            continue
        embedder = manifest.settings.get("embedder")
        used = {manifest.judge.name, embedder.value if embedder else ""}
        if manifest.candidate is not None:
            used.add(manifest.candidate.model.name)
        if name in used:
            yield run


def _model(card: ModelCard, settings: Settings) -> ModelView:
    from offline_judge import wiring
    from offline_judge.weights.licences import terms

    path = _path(card, settings)
    return ModelView(
        card,
        wiring.model_store(settings).state(card),
        path,
        fit=_fit(card, path, settings, 1),
        terms=terms(card),
        added=wiring.model_shelf(settings).card_file(card.name).is_file(),
        remedy=wiring.model_store(settings).remedy(card),
    )


def _path(card: ModelCard, settings: Settings) -> Path | None:
    from offline_judge import wiring

    store = wiring.model_store(settings)
    return store.location(card) if store.state(card) == "present" else None


def _fit(card: ModelCard, path: Path | None, settings: Settings, slots: int) -> Fit:
    from offline_judge.weights.fit import fit

    window = card.embedding.max_tokens if card.embedding else settings.window
    return fit(card, path, window=window, slots=slots)
