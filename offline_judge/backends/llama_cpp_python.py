"""llama-cpp-python in a child process: one sequence at a time, on the level of tokens."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from offline_judge.backends.engine import Engine
from offline_judge.backends.launch_llama import ScriptLauncher
from offline_judge.backends.llama_cpp import LlamaCppBackend
from offline_judge.backends.options import EngineOptions
from offline_judge.protocols import Backend

_SCRIPT = Path(__file__).with_name("llama_cpp_python_child.py")


class LlamaCppPythonBackend(LlamaCppBackend):
    """One slot, whatever number is asked for: the package works on one sequence."""

    name: ClassVar[str] = "llama_cpp_python"

    def __init__(self, options: EngineOptions) -> None:
        options = replace(options, slots=1)
        super().__init__(options, Engine(options, ScriptLauncher(_SCRIPT)))


BACKEND: type[Backend] = LlamaCppPythonBackend
