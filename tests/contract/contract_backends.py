"""The backends that are held to the contract: real ones, and products stood up on loopback."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fake_servers import MODEL, LmStudio, Ollama, OpenAi, Product, serving
from fake_vllm import Vllm

from offline_judge.backends.llama_cpp import LlamaCppBackend
from offline_judge.backends.llama_cpp_python import LlamaCppPythonBackend
from offline_judge.backends.llama_server import LlamaServerBackend
from offline_judge.backends.lmstudio import LmStudioBackend
from offline_judge.backends.ollama import OllamaBackend
from offline_judge.backends.openai import OpenAiBackend
from offline_judge.backends.options import EngineOptions
from offline_judge.backends.pool import PoolBackend
from offline_judge.backends.running import RunningServer
from offline_judge.backends.script import ScriptOptions
from offline_judge.backends.scripted import ScriptedBackend
from offline_judge.backends.vllm import VllmBackend
from offline_judge.protocols import Backend

Maker = Callable[[pytest.FixtureRequest], Backend]
WINDOW = 1024


def _scripted(request: pytest.FixtureRequest) -> Backend:
    return ScriptedBackend(ScriptOptions(window=WINDOW, slots=2))


def _small(request: pytest.FixtureRequest, **more: Any) -> EngineOptions:
    weights: Path = request.getfixturevalue("small_weights")
    options = EngineOptions(weights, "smollm2-135m", window=WINDOW, slots=2, parameters_b=0.135)
    return replace(options, **more)


def _llama_cpp(request: pytest.FixtureRequest) -> Backend:
    return LlamaCppBackend(_small(request))


def given(name: str, what: str) -> str:
    """What a variable of the tests names; a test is left out where it names nothing."""
    variable = f"OFFLINE_JUDGE_TEST_{name}"
    found = os.environ.get(variable, "")
    if not found:
        pytest.skip(f"{variable} does not name {what}")
    return found


def _llama_cpp_python(request: pytest.FixtureRequest) -> Backend:
    python = given("LLAMA_CPP_PYTHON", "an interpreter that has llama-cpp-python")
    return LlamaCppPythonBackend(_small(request, python=python))


def _llama_server(request: pytest.FixtureRequest) -> Backend:
    return LlamaServerBackend(
        _small(request, program=given("LLAMA_SERVER", "a llama-server program"))
    )


def _vllm(request: pytest.FixtureRequest) -> Backend:
    python = given("VLLM", "an interpreter that has vLLM")
    folder = Path(given("VLLM_MODEL", "a folder with the small weights for vLLM"))
    return VllmBackend(
        EngineOptions(
            folder,
            "smollm2-135m",
            window=WINDOW,
            slots=2,
            parameters_b=0.135,
            python=python,
            cache_bytes_per_token=23_040,
        )
    )


def _served(kind: type[Product], make: Callable[[EngineOptions], Backend]) -> Maker:
    def made(request: pytest.FixtureRequest) -> Backend:
        server = serving(kind(window=WINDOW))
        product = server.__enter__()
        request.addfinalizer(lambda: server.__exit__(None, None, None))
        return make(
            EngineOptions(
                model_name=MODEL,
                served_as=MODEL,
                base_url=product.url,
                window=WINDOW,
                slots=2,
            )
        )

    return made


def _running_vllm(options: EngineOptions) -> Backend:
    return VllmBackend(options, RunningServer(options, ("/v1/models",), "vLLM"))


def _pool(request: pytest.FixtureRequest) -> Backend:
    makers = [_served(Vllm, _running_vllm) for _ in range(2)]
    return PoolBackend([make(request) for make in makers], ["one", "two"])


MAKERS: dict[str, Maker] = {
    "scripted": _scripted,
    "llama_cpp": _llama_cpp,
    "llama_cpp_python": _llama_cpp_python,
    "llama_server": _llama_server,
    "vllm": _vllm,
    "ollama": _served(Ollama, OllamaBackend),
    "lmstudio": _served(LmStudio, LmStudioBackend),
    "openai": _served(OpenAi, OpenAiBackend),
    "running vllm": _served(Vllm, _running_vllm),
    "pool": _pool,
}
CHAT = frozenset({"seed"})
LABELS = frozenset({"label_probabilities"})
TOKENS = CHAT | LABELS | {"token_level", "reports_cached_tokens"}
DECLARED: dict[str, frozenset[str]] = {
    **dict.fromkeys(MAKERS, TOKENS),
    "ollama": CHAT | LABELS,
    "openai": CHAT | LABELS,
    "lmstudio": CHAT,
}
"""What each is known to do: a test is left out only for what a backend is known to lack."""
REAL = ("llama_cpp", "llama_cpp_python", "llama_server", "vllm")
PARAMS = [pytest.param(name, marks=[pytest.mark.engine] if name in REAL else []) for name in MAKERS]
