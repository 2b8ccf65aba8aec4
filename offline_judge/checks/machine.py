"""The machine: system, cores, memory, GPUs, and how busy it is."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from offline_judge.backends.options import usable_cores
from offline_judge.checks.findings import Finding, State
from offline_judge.settings import Settings
from offline_judge.weights.disk import human
from offline_judge.weights.memory import free_memory

_TIMEOUT_S = 15.0
_LITTLE = 2_000_000_000
_REPORT = (
    "import json, xllamacpp as x; print(json.dumps([{'kind': d['type'].name.rpartition('_')[2], "
    "'name': d['name'], 'description': d['description'], 'free': d['memory_free'], 'total': "
    "d['memory_total']} for d in x.get_device_info()]))"
)
_TOOLS = {
    "nvidia-smi": (
        "--query-gpu=name,memory.total,memory.free,driver_version",
        "--format=csv,noheader",
    ),
    "rocm-smi": ("--showproductname",),
}
_BUILDS = {"nvidia-smi": "llama-cuda", "rocm-smi": "llama-rocm"}


def check_machine(settings: Settings) -> Iterator[Finding]:
    """System, cores, memory and load."""
    del settings
    area = "machine"
    system = f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
    yield Finding(area, "system", "ok", system)
    cores = usable_cores()
    yield Finding(area, "cores", "ok", f"{cores} usable", data={"cores": cores})
    free = free_memory()
    if free is None:
        yield Finding(area, "memory", "note", "this system does not tell what is free")
    else:
        state: State = "ok" if free > _LITTLE else "problem"
        remedy = "" if state == "ok" else "Close other programs, or take a smaller model."
        yield Finding(area, "memory", state, f"{human(free)} free", remedy, {"free": free})
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    if load > cores:
        yield Finding(
            area,
            "load",
            "note",
            f"other programs keep {load:.1f} cores of {cores} busy",
            "An engine shares what is left; on two cores that slows it many times over.",
            {"load": load},
        )


def check_devices(settings: Settings) -> Iterator[Finding]:
    """GPUs that the engine's build can use, and GPUs that are there."""
    area = "devices"
    devices = device_report(sys.executable)
    gpus = [one for one in devices if one["kind"] in ("GPU", "IGPU", "ACCEL")]
    for one in gpus:
        text = f"{one['description']}: {human(one['free'])} of {human(one['total'])} free"
        yield Finding(area, one["name"], "ok", text, data=one)
    present = {name: found for name in _TOOLS if (found := _asked(name))}
    for tool, words in present.items():
        yield Finding(area, tool, "ok", words)
    if present and not gpus:
        build = _BUILDS[next(iter(present))]
        yield Finding(
            area,
            "engine",
            "note",
            "there is a GPU, and the built-in engine is a build without one",
            f"offline-judge engines install {build}, then --engine {build}",
        )
    elif not gpus:
        missing = settings.gpu == "required"
        yield Finding(
            area,
            "gpu",
            "problem" if missing else "ok",
            "none; the engine computes on the processor",
            "gpu = required is set: set it to auto." if missing else "",
        )


def device_report(python: str) -> list[dict[str, Any]]:
    """The devices that the engine of an interpreter sees; it is asked in a child process."""
    done = subprocess.run(
        [python, "-P", "-c", _REPORT],
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        check=True,
    )
    found: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    return found


def _asked(tool: str) -> str:
    """What the maker's own tool says; "" where it is not there or says nothing."""
    program = shutil.which(tool)
    if program is None:
        return ""
    try:
        done = subprocess.run(
            [program, *_TOOLS[tool]],
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return "; ".join(done.stdout.split("\n")).strip("; ") if done.returncode == 0 else ""


def check_storage(settings: Settings) -> Iterator[Finding]:
    """Folders: writable, with room; the secret; where control sockets are."""
    area = "storage"
    folders = {
        "data": settings.data_path,
        "cache": settings.cache_path,
        "models": settings.models_path,
    }
    for name, folder in folders.items():
        yield _folder(area, name, folder)
    secret = settings.data_path / "secret"
    if secret.exists() and secret.stat().st_mode & 0o077:
        yield Finding(
            area,
            "secret",
            "problem",
            f"{secret} can be read by others; with it a page can forge the fences of prompts",
            f"chmod 600 {secret}",
        )
    length = len(str(settings.runtime_path))
    if length > 60:
        yield Finding(
            area,
            "sockets",
            "problem",
            f"{settings.runtime_path} is too long for a control socket",
            "Set XDG_RUNTIME_DIR to a short folder.",
        )


def _folder(area: str, name: str, folder: Path) -> Finding:
    place = folder
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    text = f"{folder}: {human(free)} free"
    if not os.access(place, os.W_OK):
        variable = f"OFFLINE_JUDGE_{name.upper()}_DIR"
        # Weights may well lie where only others may write.
        state: State = "note" if name == "models" and folder.exists() else "problem"
        text = f"{folder} cannot be written"
        return Finding(area, name, state, text, f"Set {variable} to a folder of yours.")
    if free < _LITTLE:
        return Finding(area, name, "problem", text, "Free some space.", {"free": free})
    return Finding(area, name, "ok", text, data={"free": free, "path": str(folder)})
