"""Environments of their own, which hold engines that cannot share this one."""

from __future__ import annotations

from collections.abc import Mapping

from offline_judge.settings import Settings

ENVIRONMENTS: Mapping[str, str] = {
    "llama-cuda": "llama_cpp",
    "llama-rocm": "llama_cpp",
    "llama-vulkan": "llama_cpp",
    "llama-cpp-python": "llama_cpp_python",
    "vllm": "vllm",
    "vllm-cpu": "vllm",
}
"""Name of an environment to the backend that it holds."""

MARKER = "engine.json"


def interpreter(settings: Settings, name: str) -> str:
    """The Python of an installed environment; "" where it is not installed."""
    folder = settings.data_path / "engines" / name
    python = folder / "bin" / "python"
    return str(python) if (folder / MARKER).is_file() and python.exists() else ""
