"""What an engine is started with, or a running server is spoken to with."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

# Largest size (billions of parameters) and the prompt tokens such a model reads in about a
# second on two cores. A cancelled prompt is noticed between batches only, so a batch is kept
# to about that second; larger batches read no faster on a CPU.
_BATCHES = ((0.2, 256), (0.7, 128), (2.0, 64), (math.inf, 32))
_GPU_BATCH = 512

Gpu = Literal["auto", "off", "required"]


@dataclass(frozen=True)
class EngineOptions:
    """One engine for one model.

    Attributes:
        model_path: The GGUF file or, for vLLM, the folder; not of a server that already runs.
        model_name: Name for messages.
        window: Tokens one slot holds, prompt and output together.
        slots: Requests worked on at once; memory for `window * slots` tokens is taken.
        threads: Threads to compute with; 0 takes the cores this process may use.
        batch: Prompt tokens read at once; 0 takes what the model reads in about a second.
        system_role: The chat template takes a system turn and repeated roles.
        parameters_b: Billions of parameters.
        thinking_switch: The chat template's variable that turns thinking on and off.
        pooling: `mean`, `cls` or `last` makes the engine embed texts instead of writing them.
        stall_s: A request may bring no sign of life for this long before the engine is killed.
        python: Interpreter of the environment the engine is installed in; empty for this one.
        program: The server's binary, for engines that are one.
        gpu: Whether a GPU is used: where there is one, never, or else it is an error.
        gpu_layers: Layers put on the GPU; -1 for as many as fit.
        kv_cache: How the key-value cache is stored: `f16`, `q8_0` or `q4_0`.
        speculative: Drafts tokens out of what the prompt and the answer said before.
        base_url: Address of a server that already runs.
        api_key: Its key.
        served_as: What the model is called there.
        adapter: Folder of a LoRA adapter that answers in the model's place, for vLLM.
        thinks: The model shall think, so what comes of that is tried at the start.
        cache_bytes_per_token: Bytes of keys and values a token takes; 0 where it is not known.
    """

    model_path: Path = Path()
    model_name: str = ""
    window: int = 4096
    slots: int = 1
    threads: int = 0
    batch: int = 0
    system_role: bool = True
    parameters_b: float = 1.5
    thinking_switch: str = "enable_thinking"
    pooling: str = ""
    stall_s: float = 120.0
    python: str = ""
    program: str = ""
    gpu: Gpu = "auto"
    gpu_layers: int = -1
    kv_cache: str = "f16"
    speculative: bool = False
    base_url: str = ""
    api_key: str = ""
    served_as: str = ""
    adapter: Path | None = None
    thinks: bool = False
    cache_bytes_per_token: int = 0

    def chosen_batch(self, *, on_gpu: bool = False) -> int:
        """Prompt tokens read at once, never fewer than slots that generate together."""
        fitting = next(size for limit, size in _BATCHES if self.parameters_b <= limit)
        return max(self.batch or (_GPU_BATCH if on_gpu else fitting), self.slots)

    def chosen_threads(self) -> int:
        """Threads the engine computes with."""
        return self.threads or usable_cores()


def usable_cores(cpu_max: Path = Path("/sys/fs/cgroup/cpu.max")) -> int:
    """Cores this process may use: its affinity, and its control group's quota where it has one."""
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else (os.cpu_count() or 1)
    try:
        quota, period = cpu_max.read_text("ascii").split()[:2]
        if quota != "max":
            cores = min(cores, math.ceil(int(quota) / int(period)))
    except (OSError, ValueError):
        pass
    return max(cores, 1)
