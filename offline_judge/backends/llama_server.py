"""A `llama-server` binary that the user has, as a managed child, or one that runs already."""

from __future__ import annotations

from typing import ClassVar

from offline_judge.backends.engine import Engine
from offline_judge.backends.launch_llama import BinaryLauncher
from offline_judge.backends.llama_cpp import LlamaCppBackend
from offline_judge.backends.options import EngineOptions
from offline_judge.backends.serving import Serving
from offline_judge.protocols import Backend


class LlamaServerBackend(LlamaCppBackend):
    """The same dialect and promises as the built-in engine, by another program."""

    name: ClassVar[str] = "llama_server"

    def __init__(self, options: EngineOptions, engine: Serving | None = None) -> None:
        super().__init__(options, engine or Engine(options, BinaryLauncher()))


BACKEND: type[Backend] = LlamaServerBackend
