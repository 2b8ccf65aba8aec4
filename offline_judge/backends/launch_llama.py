"""How llama.cpp's server is begun: inside a Python child, or as a binary of the user's."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from offline_judge.backends.options import EngineOptions
from offline_judge.backends.process import ChildSpec
from offline_judge.backends.programs import WARDEN, free_port, healthy
from offline_judge.errors import BackendStartError

HERE = Path(__file__).parent
_PHASE_TIMEOUTS_S = {"spawn": 60.0, "import": 120.0, "load": 1200.0}
_FLAG = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*")
_HELP_S = 30.0


@dataclass(frozen=True)
class ScriptLauncher:
    """A child of ours that holds the model and serves llama.cpp's dialect.

    Attributes:
        script: The child's program.
    """

    script: Path = HERE / "llama_child.py"

    def spec(self, options: EngineOptions, api_key: str, connections: int) -> ChildSpec:
        """What to run."""
        return ChildSpec(
            script=self.script,
            config={
                "parent_pid": os.getpid(),
                "api_key": api_key,
                "model_path": str(options.model_path),
                "window": options.window,
                "slots": options.slots,
                "batch": options.chosen_batch(),
                "gpu_batch": options.chosen_batch(on_gpu=True),
                "threads": options.chosen_threads(),
                "connections": connections,
                "pooling": options.pooling,
                "gpu": options.gpu,
                "gpu_layers": options.gpu_layers,
                "kv_cache": options.kv_cache,
                "speculative": options.speculative,
            },
            name=f"the engine for {options.model_name}",
            phase_timeouts_s=_PHASE_TIMEOUTS_S,
            python=options.python,
        )

    def amended(self, options: EngineOptions, log: tuple[str, ...]) -> tuple[EngineOptions, str]:
        """Nothing: what does not start is told."""
        del log
        return options, ""


@dataclass(frozen=True)
class BinaryLauncher:
    """A `llama-server` that the user has, run so that it ends with this program."""

    def spec(self, options: EngineOptions, api_key: str, connections: int) -> ChildSpec:
        """What to run.

        Raises:
            BackendStartError: there is no such program, or it is no llama-server.
        """
        program = _program(options.program)
        version, known = _abilities(program)
        port = free_port()
        address = f"http://127.0.0.1:{port}"
        argv = [program, *_arguments(options, port, connections, known)]
        return ChildSpec(
            script=WARDEN,
            config={
                "parent_pid": os.getpid(),
                "argv": argv,
                # In the environment, because a process list shows arguments to everybody.
                "env": {"LLAMA_API_KEY": api_key},
            },
            name=f"{program} for {options.model_name}",
            phase_timeouts_s=_PHASE_TIMEOUTS_S,
            poll=lambda: healthy(address, api_key, {"version": version, "address": address}),
        )

    def amended(self, options: EngineOptions, log: tuple[str, ...]) -> tuple[EngineOptions, str]:
        """Nothing: what does not start is told."""
        del log
        return options, ""


def _program(given: str) -> str:
    found = shutil.which(given or "llama-server")
    if found is None:
        raise BackendStartError(
            f"There is no program `{given or 'llama-server'}`.",
            where="llama_server",
            remedy="Set llama_server to the path of your llama-server.",
        )
    return found


@cache
def _abilities(program: str) -> tuple[str, frozenset[str]]:
    """Its version, and the flags that it knows: they come and go from release to release."""
    texts = []
    for flag in ("--version", "--help"):
        try:
            done = subprocess.run(
                [program, flag], capture_output=True, text=True, timeout=_HELP_S, check=False
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise BackendStartError(f"Cannot run {program}: {error}", where="llama_server") from (
                error
            )
        texts.append(done.stdout + done.stderr)
    known = frozenset(_FLAG.findall(texts[1]))
    if not {"--model", "--parallel"} <= known:
        raise BackendStartError(
            f"{program} is no llama-server: its --help names neither --model nor --parallel.",
            where="llama_server",
            remedy="Set llama_server to the path of a llama-server.",
        )
    version = re.search(r"version: *(\S+)", texts[0])
    return version[1] if version else "", known


def _arguments(
    options: EngineOptions, port: int, connections: int, known: frozenset[str]
) -> list[str]:
    """As `llama_child.py` sets them, as far as this release knows them."""
    batch, threads = str(options.chosen_batch()), str(options.chosen_threads())
    pairs = [
        ("--model", str(options.model_path)),
        ("--host", "127.0.0.1"),
        ("--port", str(port)),
        ("--ctx-size", str(options.window * options.slots)),
        ("--parallel", str(options.slots)),
        ("--threads", threads),
        ("--threads-batch", threads),
        ("--poll", "0"),
        ("--cache-ram", "0"),
        ("--no-cache-idle-slots", None),
        ("--no-kv-unified", None),
        ("--no-context-shift", None),
        ("--threads-http", str(connections + 2)),
        ("--cache-type-k", options.kv_cache),
        ("--cache-type-v", options.kv_cache),
        ("--slots", None),
        ("--jinja", None),
        ("--no-ui", None),
        ("--offline", None),
        ("--cors-origins", ""),
    ]
    if options.gpu == "off":
        pairs += [("--n-gpu-layers", "0"), ("--batch-size", batch), ("--ubatch-size", batch)]
    elif options.gpu_layers >= 0:
        pairs += [("--n-gpu-layers", str(options.gpu_layers))]
    else:
        pairs += [("--fit", "on"), ("--batch-size", batch), ("--ubatch-size", batch)]
    if options.speculative:
        pairs += [("--spec-type", "ngram-simple")]
    chosen = [(flag, value) for flag, value in pairs if flag in known]
    return [
        part for flag, value in chosen for part in ((flag,) if value is None else (flag, value))
    ]
