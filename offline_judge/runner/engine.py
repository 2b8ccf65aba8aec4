"""The engine of a role, and the record of when it comes up."""

from __future__ import annotations

import time
from dataclasses import dataclass

from offline_judge.domain.events import EngineStarted
from offline_judge.protocols import Backend, TraceSink
from offline_judge.runner.listeners import SafeListeners


@dataclass(frozen=True)
class Engine:
    """The engine of a run and what it is called in the trace."""

    backend: Backend
    name: str
    version: str
    model: str
    window: int


class EngineLog:
    """Passes an engine's phases on and records each time it is up, at first and after a crash.

    An engine says when it restarts but not always when it is ready again; then its first answer
    shows it.
    """

    def __init__(
        self, engine: Engine, trace: TraceSink, listeners: SafeListeners, role: str = "judge"
    ) -> None:
        self._engine = engine
        self._trace = trace
        self._listeners = listeners
        self._role = role
        self._began = time.monotonic()
        self._restarts = 0
        self._reason = ""
        self._awaited = True

    def __call__(self, phase: str, detail: str = "") -> None:
        """Take note of a phase."""
        self._listeners.phase(phase, detail)
        if phase == "restart":
            self._began = time.monotonic()
            self._restarts += 1
            self._reason = detail
            self._awaited = True

    def answered(self) -> None:
        """The engine is up: record it if it was not before."""
        if not self._awaited:
            return
        self._awaited = False
        capabilities = self._engine.backend.capabilities
        self._trace.emit(
            EngineStarted(
                engine=self._engine.name,
                version=self._engine.version,
                model=self._engine.model,
                window=capabilities.window,
                slots=capabilities.slots,
                start_s=round(time.monotonic() - self._began, 3),
                restart=self._restarts,
                reason=self._reason,
                role=self._role,
            )
        )
