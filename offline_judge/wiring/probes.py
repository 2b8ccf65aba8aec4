"""Records of probes: one a combination of weights, engine and sizes, kept in the cache."""

from __future__ import annotations

import asyncio
from pathlib import Path

from pydantic import ValidationError

from offline_judge.backends.probing import probed
from offline_judge.domain.base import content_hash
from offline_judge.domain.capability import CapabilityReport
from offline_judge.domain.run import ModelIdentity
from offline_judge.protocols import StartListener
from offline_judge.runner.engine import Engine
from offline_judge.settings import Settings
from offline_judge.weights.disk import storing, write_json

_SHAPING = ("engine", "window", "gpu", "gpu_layers", "kv_cache", "speculative", "thinking_tokens")
_VERSION = 1


def probe_path(settings: Settings, identity: ModelIdentity) -> Path:
    """Where the record of a probe is; another model, engine or size has another one."""
    shaping = {name: getattr(settings, name) for name in _SHAPING}
    key = content_hash(
        {
            "version": _VERSION,
            "weights": identity.sha256,
            "engine": [identity.engine, identity.engine_version],
            # Of a server that runs, the address is part of which one it is.
            "served": settings.judge if not identity.engine_version else "",
            "settings": shaping,
        }
    )
    return settings.cache_path / "probes" / f"{key}.json"


def stored_probe(settings: Settings, identity: ModelIdentity) -> CapabilityReport | None:
    """The last probe of these weights behind this engine; None where there was none."""
    try:
        text = probe_path(settings, identity).read_bytes()
        return CapabilityReport.model_validate_json(text)
    except (OSError, ValidationError):
        return None


def stored_probes(settings: Settings) -> list[CapabilityReport]:
    """The records of all probes, whatever judge and engine they are of."""
    found = []
    for path in sorted((settings.cache_path / "probes").glob("*.json")):
        try:
            found.append(CapabilityReport.model_validate_json(path.read_bytes()))
        except (OSError, ValidationError):
            continue
    return found


def probe_engine(
    engine: Engine, identity: ModelIdentity, settings: Settings, listener: StartListener
) -> CapabilityReport:
    """Start an engine, try out all it promises, end it, and keep what was seen.

    Raises:
        BackendError: it does not start, or dies on the way.
        StorageError: the record cannot be written.
    """
    report = asyncio.run(_probe(engine, listener))
    facts = engine.backend.facts
    report = report.model_copy(
        update={
            "model": identity.name,
            "engine": identity.engine,
            "engine_version": engine.version or facts.version,
            "asked_window": settings.window,
            "offloaded": facts.offloaded,
            "notes": facts.notes,
        }
    )
    path = probe_path(settings, identity)
    with storing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, report.model_dump(mode="json"))
    return report


async def _probe(engine: Engine, listener: StartListener) -> CapabilityReport:
    backend = engine.backend
    await backend.start(listener)
    try:
        return await probed(backend, listener)
    finally:
        await backend.close()
