"""How engines are begun: what is asked of a GPU, what vLLM's log says, what it suggests itself."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from enum import Enum
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from offline_judge.backends import engine as engine_module
from offline_judge.backends import llama_child
from offline_judge.backends.devices import offloaded_layers
from offline_judge.backends.engine import Engine
from offline_judge.backends.launch_vllm import VllmLauncher, read_phase
from offline_judge.backends.options import EngineOptions
from offline_judge.backends.process import ChildSpec
from offline_judge.errors import BackendStartError

FAKE = Path(__file__).with_name("fake_engine.py")


class Kind(Enum):
    GGML_BACKEND_DEVICE_TYPE_CPU = 0
    GGML_BACKEND_DEVICE_TYPE_GPU = 1
    GGML_BACKEND_DEVICE_TYPE_IGPU = 2


def device(kind: Kind, name: str = "CUDA0", free: int = 8_000) -> dict[str, Any]:
    return {
        "name": name,
        "description": f"a {name}",
        "type": kind,
        "memory_free": free,
        "memory_total": 10_000,
    }


CPU = device(Kind.GGML_BACKEND_DEVICE_TYPE_CPU, "CPU")
GPU = device(Kind.GGML_BACKEND_DEVICE_TYPE_GPU)


def reported(*devices: dict[str, Any]) -> list[dict[str, Any]]:
    return llama_child.device_report(SimpleNamespace(get_device_info=lambda: devices))


def test_a_report_has_kind_and_memory_of_each_device() -> None:
    assert reported(CPU, GPU)[1] == {
        "name": "CUDA0",
        "description": "a CUDA0",
        "kind": "GPU",
        "free": 8_000,
        "total": 10_000,
    }


@pytest.mark.parametrize(
    ("devices", "wanted", "problem"),
    [
        ((CPU,), "auto", ""),
        ((CPU,), "off", ""),
        ((CPU,), "required", "sees CPU only"),
        ((), "required", "sees nothing only"),
        ((CPU, GPU), "required", ""),
        ((CPU, device(Kind.GGML_BACKEND_DEVICE_TYPE_IGPU, "Vulkan0")), "required", ""),
        (
            (CPU, device(Kind.GGML_BACKEND_DEVICE_TYPE_GPU, free=0)),
            "required",
            "none has free memory: a CUDA0",
        ),
    ],
)
def test_a_gpu_that_is_required_and_cannot_be_used_is_a_problem(
    devices: tuple[dict[str, Any], ...], wanted: str, problem: str
) -> None:
    found = llama_child.gpu_problem(reported(*devices), wanted)
    assert problem in found
    assert bool(found) == bool(problem)


class FakePackage:
    """As much of xllamacpp as the child sets."""

    ggml_type = SimpleNamespace(GGML_TYPE_F16="f16", GGML_TYPE_Q8_0="q8_0", GGML_TYPE_Q4_0="q4_0")
    common_speculative_type = SimpleNamespace(COMMON_SPECULATIVE_TYPE_NGRAM_SIMPLE="ngram")

    class CommonParams(SimpleNamespace):
        def __init__(self) -> None:
            super().__init__(
                model=SimpleNamespace(),
                cpuparams=SimpleNamespace(),
                cpuparams_batch=SimpleNamespace(),
                speculative=SimpleNamespace(types=["none"]),
                n_gpu_layers=-1,
            )


def params(devices: list[dict[str, Any]], **more: Any) -> Any:
    config = {
        "model_path": "m",
        "slots": 2,
        "window": 1000,
        "batch": 64,
        "gpu_batch": 512,
        "threads": 2,
        "connections": 8,
        "api_key": "k",
        "pooling": "",
        "gpu": "auto",
        "gpu_layers": -1,
        "kv_cache": "f16",
        "speculative": False,
        **more,
    }
    return llama_child._params(FakePackage, config, devices)


def test_layers_are_fitted_beside_the_whole_window() -> None:
    found = params(reported(CPU, GPU))
    assert found.fit_params
    assert found.fit_params_min_ctx == found.n_ctx == 2000
    assert found.n_gpu_layers == -1
    assert found.n_batch == 512


def test_a_number_of_layers_is_taken_as_it_is() -> None:
    found = params(reported(CPU, GPU), gpu_layers=7)
    assert not found.fit_params
    assert found.n_gpu_layers == 7


@pytest.mark.parametrize("devices", [(CPU,), (CPU, GPU)])
def test_without_a_gpu_or_with_gpu_off_nothing_is_offloaded(
    devices: tuple[dict[str, Any], ...],
) -> None:
    found = params(reported(*devices), gpu="off")
    assert found.n_gpu_layers == 0
    assert not found.fit_params
    assert found.n_batch == 64


def test_cache_type_and_drafting_are_passed_on() -> None:
    found = params(reported(CPU), kv_cache="q8_0", speculative=True)
    assert found.cache_type_k == found.cache_type_v == "q8_0"
    assert found.speculative.types == ["ngram"]
    assert params(reported(CPU)).speculative.types == ["none"]


def test_the_log_tells_the_layers_on_the_gpu() -> None:
    log = ["load_tensors: offloading 12 layers", "load_tensors: offloaded 12/29 layers to GPU"]
    assert offloaded_layers(log) == (12, 29)
    assert offloaded_layers(["nothing of it"]) is None


@pytest.mark.parametrize(
    ("line", "phase"),
    [
        ("(APIServer pid=1) INFO [utils.py:1] non-default args: {'model': 'x'}", "import"),
        ("INFO 12-01 [core.py:1] Initializing a V1 LLM engine (v0.32) with config", "import"),
        ("INFO [gpu_model_runner.py:1] Starting to load model /m...", "weights"),
        ("INFO [monitor.py:1] torch.compile takes 10.2 s in total", "compile"),
        ("Capturing CUDA graphs (mixed prefill-decode): 4%", "compile"),
        ("INFO [kv_cache_utils.py:1] GPU KV cache size: 46,592 tokens", "cache"),
        ("INFO [launcher.py:1] Starting vLLM server on http://127.0.0.1:8000", "serve"),
        ("INFO: something else", ""),
    ],
)
def test_the_log_of_vllm_tells_its_phases(line: str, phase: str) -> None:
    found = read_phase(line)
    assert (found or {}).get("phase", "") == phase


VLLM_WORDS = (
    "ValueError: To serve at least one request with the models's max seq len (32768), (4.00 GiB KV "
    "cache is needed, which is larger than the available KV cache memory (1.20 GiB). Based on the "
    "available memory, the estimated maximum model length is 9824. Try increasing",
    "ValueError: The model's max seq len (32768) is larger than the maximum number of tokens that "
    "can be stored in KV cache (9830). Try increasing",
)


@pytest.mark.parametrize("words", VLLM_WORDS)
def test_a_smaller_window_that_vllm_suggests_is_taken(words: str) -> None:
    options = EngineOptions(Path("m"), window=32768)
    amended, why = VllmLauncher().amended(options, ("noise", words, "more noise"))
    assert amended.window == 9824
    assert "9824 in place of 32768" in why


def test_nothing_is_changed_where_it_suggests_nothing_smaller() -> None:
    options = EngineOptions(Path("m"), window=4096)
    for log in ((), ("some other fault",), (VLLM_WORDS[0],)):
        assert VllmLauncher().amended(options, log) == (options, "")


def test_vllm_without_an_environment_says_how_to_make_one() -> None:
    with pytest.raises(BackendStartError, match="engines install vllm"):
        VllmLauncher().spec(EngineOptions(Path("m")), "key", 4)


def test_vllm_is_started_as_a_module_with_its_key_out_of_sight() -> None:
    options = EngineOptions(
        Path("/m"),
        "card",
        window=2048,
        slots=3,
        python="/env/bin/python",
        adapter=Path("/lora/strict"),
        cache_bytes_per_token=1_000_000,
    )
    config = VllmLauncher().spec(options, "secret", 4).config
    argv = config["argv"]
    assert argv[:3] == ["/env/bin/python", "-m", "vllm.entrypoints.openai.api_server"]
    assert "secret" not in " ".join(argv)
    assert config["env"]["VLLM_API_KEY"] == "secret"
    # 2048 x 3 tokens of a megabyte each, in GiB, rounded up.
    assert config["env"]["VLLM_CPU_KVCACHE_SPACE"] == "6"
    assert argv[argv.index("--lora-modules") + 1] == "strict=/lora/strict"
    assert argv[argv.index("--max-model-len") + 1] == "2048"


class Shrinking:
    """Fails to start until the window is small enough, and says so as vLLM does."""

    def __init__(self) -> None:
        self.windows: list[int] = []

    def spec(self, options: EngineOptions, api_key: str, connections: int) -> ChildSpec:
        self.windows.append(options.window)
        name = "well" if options.window <= 4096 else "dead"
        return ChildSpec(
            script=FAKE,
            config={"model_path": name, "parent_pid": os.getpid()},
            name="an engine",
            phase_timeouts_s={"spawn": 60.0, "load": 60.0},
            python=sys.executable,
        )

    def amended(self, options: EngineOptions, log: tuple[str, ...]) -> tuple[EngineOptions, str]:
        assert any("the cause" in line for line in log)
        return replace(options, window=options.window // 2), f"window {options.window // 2}"


async def test_a_smaller_window_is_tried_visibly_and_not_for_ever() -> None:
    told: list[tuple[str, str]] = []
    launcher = Shrinking()
    engine = Engine(EngineOptions(Path("m"), window=8192), launcher)
    await engine.start(lambda phase, detail="": told.append((phase, detail)))
    await engine.close()
    assert launcher.windows == [8192, 4096]
    assert engine.options.window == 4096
    assert ("amend", "window 4096") in told
    stubborn = Shrinking()
    engine = Engine(EngineOptions(Path("m"), window=2**20), stubborn)
    with pytest.raises(BackendStartError):
        await engine.start(lambda phase, detail="": None)
    assert len(stubborn.windows) == engine_module._MOST_AMENDMENTS + 1
