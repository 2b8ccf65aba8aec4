"""The engine's process: holds the model and serves HTTP on loopback until its pipe ends.

Run as a file, with the standard library and xllamacpp only, so that it starts fast and nothing
of this program is loaded twice. Its one line of JSON on stdin (`ChildConfig` of `engine.py`)
carries the key, which so never shows in a process list. Phases go to stdout, one JSON object a
line; the engine's log goes to stderr.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import threading
from typing import Any, NoReturn

_PR_SET_PDEATHSIG = 1
_GPU_KINDS = ("GPU", "IGPU", "ACCEL")
_NO_GPU = (
    "Install a build for it (`offline-judge engines install llama-cuda`, llama-rocm or "
    "llama-vulkan) and choose that engine, or set gpu = auto."
)


def main() -> int:
    """Start the server and wait for the end of stdin."""
    _die_with_parent()
    line = sys.stdin.buffer.readline()
    if not line:
        return 0
    config = json.loads(line)
    # The parent may have died before the death signal was asked for: then somebody else is now.
    if os.getppid() != config["parent_pid"]:
        return 0
    report = _take_stdout()
    watcher = threading.Thread(target=_exit_at_end_of_pipe, daemon=True)
    watcher.start()
    _tell(report, phase="import")
    import xllamacpp

    devices = device_report(xllamacpp)
    if problem := gpu_problem(devices, config["gpu"]):
        _tell(report, phase="failed", error=problem, remedy=_NO_GPU)
        return 1
    _tell(report, phase="load", version=xllamacpp.__version__, devices=devices)
    try:
        server = xllamacpp.Server(_params(xllamacpp, config, devices))
    except RuntimeError as error:
        _tell(report, phase="failed", error=str(error))
        return 1
    _tell(report, phase="ready", address=server.listening_address)
    watcher.join()
    return 0


def _die_with_parent() -> None:
    """Ask Linux for SIGKILL when the thread that spawned this process ends."""
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _take_stdout() -> int:
    """Keep stdout for phases: whatever native code prints there goes to stderr instead."""
    report = os.dup(1)
    os.dup2(2, 1)
    return report


def _exit_at_end_of_pipe() -> NoReturn:
    while True:
        try:
            if not os.read(0, 4096):
                break
        except OSError:
            break
    # Nothing here needs tidying up, and native threads would delay an orderly exit.
    os._exit(0)


def _tell(report: int, **fields: Any) -> None:
    os.write(report, json.dumps(fields).encode() + b"\n")


def device_report(xllamacpp: Any) -> list[dict[str, Any]]:
    """The devices that this build can compute on: name, description, kind, bytes free and all."""
    return [
        {
            "name": str(device["name"]),
            "description": str(device["description"]),
            "kind": device["type"].name.rpartition("_")[2],
            "free": int(device["memory_free"]),
            "total": int(device["memory_total"]),
        }
        for device in xllamacpp.get_device_info()
    ]


def gpu_problem(devices: list[dict[str, Any]], wanted: str) -> str:
    """Why a GPU that was asked for cannot be used; empty where it can, or was not asked for."""
    if wanted != "required":
        return ""
    gpus = [device for device in devices if device["kind"] in _GPU_KINDS]
    if not gpus:
        kinds = ", ".join(sorted({device["kind"] for device in devices})) or "nothing"
        return f"a GPU is required, and this build of llama.cpp sees {kinds} only"
    if not any(device["free"] > 0 for device in gpus):
        names = ", ".join(device["description"] or device["name"] for device in gpus)
        return f"a GPU is required, and none has free memory: {names}"
    return ""


def _params(xllamacpp: Any, config: dict[str, Any], devices: list[dict[str, Any]]) -> Any:
    params = xllamacpp.CommonParams()
    params.model.path = config["model_path"]
    params.n_parallel = config["slots"]
    params.n_ctx = config["window"] * config["slots"]
    params.n_batch = params.n_ubatch = config["batch"]
    for cpu in (params.cpuparams, params.cpuparams_batch):
        cpu.n_threads = config["threads"]
        # Threads that spin while they wait gain nothing measurable on free cores and slow a
        # machine with other work down many times over.
        cpu.poll = 0
    _offload(params, config, devices)
    _cache_types(xllamacpp, params, config)
    # Never a shifted window: overflow is an error.
    params.ctx_shift = False
    params.kv_unified = False
    # Answers of other requests have leaked out of the host-memory prompt cache.
    params.cache_ram_mib = 0
    params.cache_idle_slots = False
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    # A kept-alive connection holds a thread, so every connection of the client needs one.
    params.n_threads_http = config["connections"] + 2
    params.api_keys = [config["api_key"]]
    params.cors_origins = params.cors_methods = params.cors_headers = ""
    params.cors_credentials = False
    params.ui = False
    params.endpoint_slots = True
    params.endpoint_metrics = params.endpoint_props = False
    params.offline = True
    params.use_jinja = True
    params.warmup = True
    if config["speculative"]:
        params.speculative.types = [
            xllamacpp.common_speculative_type.COMMON_SPECULATIVE_TYPE_NGRAM_SIMPLE
        ]
    if config["pooling"]:
        kinds = xllamacpp.llama_pooling_type
        params.embedding = True
        params.pooling_type = getattr(kinds, f"LLAMA_POOLING_TYPE_{config['pooling'].upper()}")
    return params


def _offload(params: Any, config: dict[str, Any], devices: list[dict[str, Any]]) -> None:
    """Put as many layers on a GPU as fit beside the whole window, which is never made smaller."""
    gpu = config["gpu"] != "off" and any(device["kind"] in _GPU_KINDS for device in devices)
    params.fit_params = gpu and config["gpu_layers"] < 0
    params.fit_params_min_ctx = params.n_ctx
    if not gpu:
        params.n_gpu_layers = 0
    elif config["gpu_layers"] >= 0:
        params.n_gpu_layers = config["gpu_layers"]
    if gpu:
        params.n_batch = params.n_ubatch = config["gpu_batch"]


def _cache_types(xllamacpp: Any, params: Any, config: dict[str, Any]) -> None:
    kind = getattr(xllamacpp.ggml_type, f"GGML_TYPE_{config['kv_cache'].upper()}")
    params.cache_type_k = params.cache_type_v = kind


if __name__ == "__main__":
    sys.exit(main())
