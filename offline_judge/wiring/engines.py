"""Model cards to engines."""

from __future__ import annotations

from pathlib import Path

from offline_judge.backends.absent import AbsentBackend
from offline_judge.backends.options import EngineOptions
from offline_judge.domain.base import content_hash
from offline_judge.domain.run import ModelIdentity
from offline_judge.errors import UsageError
from offline_judge.protocols import Backend
from offline_judge.registry import BACKENDS
from offline_judge.runner.engine import Engine
from offline_judge.settings import VERSION, Settings
from offline_judge.weights.fit import check_fit
from offline_judge.wiring.installation import (
    SCRIPTED,
    model_card,
    model_store,
    package_version,
)


def no_engine() -> tuple[Engine, ModelIdentity]:
    """The engine of a method that asks no judge, and what stands for its weights."""
    backend = AbsentBackend()
    identity = ModelIdentity(name=backend.name, sha256="", engine=backend.name)
    engine = Engine(backend=backend, name=backend.name, version="", model=backend.name, window=0)
    return engine, identity


def make_engine(settings: Settings, slots: int) -> tuple[Engine, ModelIdentity]:
    """The engine of the judge that the settings name, not started yet, and its weights.

    Raises:
        UsageError: the card is not one of a judge.
        MissingModelError: no such card, or its weights are not here.
        DoesNotFitError: weights and cache are larger than the free memory.
    """
    if settings.judge.partition(":")[0] == SCRIPTED:
        return _scripted_engine(settings, slots)
    card = model_card(settings.judge, settings)
    if card.role == "embedder":
        raise UsageError(f"`{card.name}` is an embedder and cannot judge.", where="judge")
    path = model_store(settings).path(card)
    window = min(settings.window, card.window)
    check_fit(card, path, window=window, slots=slots)
    options = EngineOptions(
        model_path=path,
        model_name=card.name,
        window=window,
        slots=slots,
        threads=settings.threads,
        batch=settings.batch,
        system_role=card.quirks.system_role,
        parameters_b=card.parameters_b,
    )
    backend: Backend = BACKENDS.load("llama_cpp")(options)
    identity = ModelIdentity(
        name=card.name,
        sha256=card.weights_sha256,
        engine=backend.name,
        engine_version=package_version("xllamacpp"),
        family=card.family,
    )
    return _described(backend, identity, settings), identity


def _scripted_engine(settings: Settings, slots: int) -> tuple[Engine, ModelIdentity]:
    from offline_judge.backends.script import ScriptOptions

    _, _, file = settings.judge.partition(":")
    script = ScriptOptions.from_file(Path(file)) if file else ScriptOptions()
    window = script.window if "window" in script.model_fields_set else settings.window
    script = script.model_copy(update={"window": window, "slots": slots})
    backend: Backend = BACKENDS.load(SCRIPTED)(script)
    identity = ModelIdentity(
        name=SCRIPTED,
        # What it answers; how fast, and what goes wrong on the way, makes no other judge.
        sha256=content_hash(script.model_dump(mode="json", include={"rules", "label_rules"})),
        engine=backend.name,
        engine_version=VERSION,
    )
    return _described(backend, identity, settings), identity


def _described(backend: Backend, identity: ModelIdentity, settings: Settings) -> Engine:
    return Engine(
        backend=backend,
        name=identity.engine,
        version=identity.engine_version,
        model=identity.name,
        window=settings.window,
    )
