"""Model cards, environments and servers that run to engines."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from offline_judge.backends.absent import AbsentBackend
from offline_judge.backends.options import EngineOptions, Gpu
from offline_judge.domain.base import content_hash
from offline_judge.domain.run import ModelIdentity
from offline_judge.errors import MissingError, UsageError
from offline_judge.protocols import Backend
from offline_judge.registry import BACKENDS
from offline_judge.runner.engine import Demands, Engine
from offline_judge.settings import VERSION, Settings
from offline_judge.weights.cards import ModelCard
from offline_judge.weights.disk import file_sha256
from offline_judge.weights.fit import KV_BYTES, check_fit, fit
from offline_judge.wiring.endpoints import Endpoint, endpoints
from offline_judge.wiring.environments import ENVIRONMENTS, for_gpu, interpreter
from offline_judge.wiring.installation import (
    SCRIPTED,
    model_card,
    model_store,
    package_version,
)
from offline_judge.wiring.probes import stored_probe

_BUILT_IN = "llama_cpp"
_FOLDERS = "vllm"
_MANAGED = ("llama_cpp", "llama_cpp_python", "llama_server", "vllm")


def no_engine() -> tuple[Engine, ModelIdentity]:
    """The engine of a method that asks no judge, and what stands for its weights."""
    backend = AbsentBackend()
    identity = ModelIdentity(name=backend.name, sha256="", engine=backend.name)
    engine = Engine(backend=backend, name=backend.name, version="", model=backend.name, window=0)
    return engine, identity


def make_engine(settings: Settings, slots: int) -> tuple[Engine, ModelIdentity]:
    """The engine of the judge that the settings name, not started yet, and its weights.

    Raises:
        UsageError: the card is not one of a judge, the engine's name is unknown or does not run
            such weights, or a server is not allowed.
        MissingError: no such card, its weights are not here, or the engine is not installed.
        DoesNotFitError: weights and cache are larger than the free memory.
    """
    if settings.judge.partition(":")[0] == SCRIPTED:
        return _scripted_engine(settings, slots)
    served = endpoints(settings)
    if settings.thinking_tokens >= settings.window:
        raise UsageError(
            f"{settings.thinking_tokens} tokens of thinking leave nothing of a window of "
            f"{settings.window}.",
            where="thinking_tokens",
            remedy="Set fewer, or a larger window.",
        )
    if served:
        return _served_engine(served, settings, slots)
    card = model_card(settings.judge, settings)
    if card.role == "embedder":
        raise UsageError(f"`{card.name}` is an embedder and cannot judge.", where="judge")
    name, python = _chosen(card, settings)
    _check_format(card, name)
    options = _options(card, settings, slots, python)
    sha256, known_as = card.weights_sha256, card.name
    if settings.adapter:
        options, sha256, known_as = _adapted(options, sha256, name, settings)
    # On a GPU the weights lie in another memory, of which the engine itself says what fits.
    if settings.gpu == "off" or not (for_gpu(python) or name == "llama_server"):
        _check_memory(card, options)
    backend: Backend = BACKENDS.load(name)(options)
    identity = ModelIdentity(
        name=known_as,
        sha256=sha256,
        engine=backend.name,
        engine_version=package_version("xllamacpp") if name == _BUILT_IN and not python else "",
        family=card.family,
    )
    return _described(backend, identity, settings), identity


def is_served(settings: Settings) -> bool:
    """Whether the judge is a server that runs, whose weights nobody here can vouch for."""
    return bool(endpoints(settings))


def _chosen(card: ModelCard, settings: Settings) -> tuple[str, str]:
    """Name of the backend, and the interpreter it runs in; "" for this one."""
    wanted = settings.engine
    if wanted == "auto":
        # Folders are what vLLM opens and nothing else does.
        wanted = _FOLDERS if card.format == "hf" else _BUILT_IN
    if wanted in ENVIRONMENTS:
        found = interpreter(settings, wanted)
        if not found:
            raise MissingError(
                f"The engine `{wanted}` is not installed.",
                where="engine",
                remedy=f"offline-judge engines install {wanted}",
            )
        return ENVIRONMENTS[wanted], found
    if wanted not in _MANAGED:
        known = ", ".join(dict.fromkeys(("auto", *_MANAGED, *ENVIRONMENTS)))
        raise UsageError(
            f"No engine is called `{wanted}`.", where="engine", remedy=f"Known: {known}."
        )
    return wanted, _where_it_is(wanted, settings)


def _where_it_is(name: str, settings: Settings) -> str:
    """The interpreter of the first environment that has this backend; "" for this one."""
    if name == _BUILT_IN:
        return ""
    for environment, backend in ENVIRONMENTS.items():
        if backend == name and (found := interpreter(settings, environment)):
            return found
    if name == "llama_cpp_python" and not package_version("llama-cpp-python"):
        raise MissingError(
            "llama-cpp-python is not installed.",
            where="engine",
            remedy="pip install 'offline-llm-judge[llama-cpp-python]', which compiles it, or "
            "offline-judge engines install llama-cpp-python",
        )
    return ""


def _options(card: ModelCard, settings: Settings, slots: int, python: str) -> EngineOptions:
    path = model_store(settings).path(card)
    window = min(settings.window, card.window)
    need = fit(card, path, window=window, slots=slots, kv_bytes=KV_BYTES[settings.kv_cache])
    return EngineOptions(
        model_path=path,
        model_name=card.name,
        window=window,
        slots=slots,
        cache_bytes_per_token=need.slot // window,
        threads=settings.threads,
        batch=settings.batch,
        system_role=card.quirks.system_role,
        parameters_b=card.parameters_b,
        python=python,
        program=settings.llama_server,
        thinks=settings.thinking_tokens > 0,
        **_switch(card.quirks.thinking_switch),
        **_hardware(settings),
    )


def _adapted(
    options: EngineOptions, weights: str, engine: str, settings: Settings
) -> tuple[EngineOptions, str, str]:
    """Options, hash of the weights and name of a judge with its LoRA adapter."""
    folder = Path(settings.adapter).absolute()
    if engine != _FOLDERS:
        raise UsageError(
            f"The engine `{engine}` takes no adapter here.",
            where="adapter",
            remedy="Use --engine vllm, or weights that the adapter was merged into.",
        )
    if not (folder / "adapter_config.json").is_file():
        raise UsageError(
            "This is no folder of a LoRA adapter: it has no adapter_config.json.",
            where=str(folder),
        )
    hashes = {
        path.name: file_sha256(path, lambda _: None)
        for path in sorted(folder.iterdir())
        if path.suffix in (".json", ".safetensors", ".bin")
    }
    combined = content_hash({"weights": weights, "adapter": hashes})
    return replace(options, adapter=folder), combined, f"{options.model_name}+{folder.name}"


def _check_format(card: ModelCard, engine: str) -> None:
    """VLLM opens folders, the others GGUF files; anything else is for the engine to say."""
    if (card.format == "hf") == (engine == _FOLDERS):
        return
    others = "llama_cpp" if engine == _FOLDERS else _FOLDERS
    kind = "a folder in Hugging Face format" if card.format == "hf" else "a GGUF file"
    raise UsageError(
        f"The engine `{engine}` does not open {card.name}, which is {kind}.",
        where="engine",
        remedy=f"Set `engine` to {others}, or name another judge.",
    )


def _check_memory(card: ModelCard, options: EngineOptions) -> None:
    check_fit(
        card,
        options.model_path,
        window=options.window,
        slots=options.slots,
        kv_bytes=KV_BYTES[options.kv_cache],
    )


def _switch(name: str) -> dict[str, Any]:
    return {"thinking_switch": name} if name else {}


def _hardware(settings: Settings) -> dict[str, Any]:
    return {
        "gpu": cast(Gpu, settings.gpu),
        "gpu_layers": settings.gpu_layers,
        "kv_cache": settings.kv_cache,
        "speculative": settings.speculative,
    }


def _served_engine(
    served: tuple[Endpoint, ...], settings: Settings, slots: int
) -> tuple[Engine, ModelIdentity]:
    first = served[0]
    share = -(-slots // len(served))
    backends = [_served(one, settings, share) for one in served]
    if len(backends) == 1:
        backend = backends[0]
    else:
        from offline_judge.backends.pool import PoolBackend

        backend = PoolBackend(backends, [one.url for one in served])
    identity = ModelIdentity(
        name=f"{first.kind}:{first.model}",
        # Nobody here sees the weights; what is asked for by name stands for them.
        sha256=content_hash({"kind": first.kind, "model": first.model}),
        engine=first.backend,
    )
    return _described(backend, identity, settings), identity


def _served(one: Endpoint, settings: Settings, slots: int) -> Backend:
    from offline_judge.backends.running import RunningServer

    options = EngineOptions(
        model_name=one.model,
        served_as=one.model,
        window=settings.window,
        slots=slots,
        base_url=one.url,
        api_key=one.api_key,
        thinks=settings.thinking_tokens > 0,
    )
    made = BACKENDS.load(one.backend)
    backend: Backend
    if one.kind == "vllm":
        backend = made(options, RunningServer(options, ("/v1/models",), "vLLM"))
    elif one.kind == "llama-server":
        backend = made(options, RunningServer(options, ("/props",), "llama-server"))
    else:
        backend = made(options)
    return backend


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
        demands=Demands(thinking_tokens=settings.thinking_tokens),
        probe=stored_probe(settings, identity),
    )
