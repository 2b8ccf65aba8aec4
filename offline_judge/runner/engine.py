"""The engine of a role, and the record of when it comes up."""

from __future__ import annotations

import time
from dataclasses import dataclass

from offline_judge.domain.capability import CapabilityReport
from offline_judge.domain.events import EngineStarted
from offline_judge.domain.message import Capabilities
from offline_judge.errors import BackendError
from offline_judge.protocols import Backend, TraceSink
from offline_judge.runner.listeners import SafeListeners


@dataclass(frozen=True)
class Demands:
    """What a run cannot do without.

    Attributes:
        thinking_tokens: The judge shall think before it answers, for so many tokens at most.
        probabilities: Verdicts must have probabilities, or must have none; None for either.
    """

    thinking_tokens: int = 0
    probabilities: bool | None = None

    def check(self, engine: str, can: Capabilities) -> None:
        """Refuse an engine that was seen not to do what is needed.

        Raises:
            BackendError: naming what it lacks and what to use instead.
        """
        if not self.thinking_tokens and can.thinking_modes and "off" not in can.thinking_modes:
            raise BackendError(
                f"The judge behind `{engine}` thinks though it was told not to, so its verdicts "
                "cannot be read from the first token of its answers.",
                where="thinking_tokens",
                remedy="Let it think: --thinking 512, or use another model.",
            )
        if self.thinking_tokens and "on" not in can.thinking_modes:
            raise BackendError(
                f"The judge shall think, and behind `{engine}` it was not seen to: no thought "
                "and answer came where both were asked for.",
                where="thinking_tokens",
                remedy="Set thinking_tokens = 0, allow more tokens, or use a model that thinks.",
            )
        if self.probabilities and not can.label_probabilities:
            raise BackendError(
                f"`{engine}` gives no label probabilities, and the verdicts so far, or the run's "
                "calibration, have them: two ways of judging are never mixed in one figure.",
                remedy="Use the engine it began with, or a new run; llama_cpp and vllm give them.",
            )
        if self.probabilities is False and can.label_probabilities:
            raise BackendError(
                f"`{engine}` gives label probabilities now, and the verdicts so far have none: two "
                "ways of judging are never mixed in one figure.",
                remedy="Begin a new run.",
            )


@dataclass(frozen=True)
class Engine:
    """The engine of a run and what it is called in the trace.

    `demands` is what the run cannot do without, `probe` what was seen when all was tried out.
    """

    backend: Backend
    name: str
    version: str
    model: str
    window: int
    demands: Demands = Demands()
    probe: CapabilityReport | None = None

    def check(self, can: Capabilities) -> None:
        """Refuse what was seen not to work.

        Raises:
            BackendError: naming what is lacking and what to use instead.
        """
        self.demands.check(self.name, can)
        seen = self.probe
        if seen is None:
            return
        if seen.mixed_up:
            raise BackendError(
                f"When `{self.name}` was probed, it mixed up the answers of two requests.",
                remedy="Use another engine or version, or one lane with one request at a time; "
                "then: offline-judge doctor --probe",
            )
        if seen.needle in ("lost", "cut") and can.window >= seen.needle_tokens:
            raise BackendError(
                f"When `{self.name}` was probed, it did not read the front of a prompt of "
                f"{seen.needle_tokens} tokens, and the window is {can.window}.",
                where="window",
                remedy="Set a smaller window, or give the server a larger one; then: "
                "offline-judge doctor --probe",
            )


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
        facts = self._engine.backend.facts
        self._trace.emit(
            EngineStarted(
                engine=self._engine.name,
                version=self._engine.version or facts.version,
                model=self._engine.model,
                window=capabilities.window,
                slots=capabilities.slots,
                start_s=round(time.monotonic() - self._began, 3),
                restart=self._restarts,
                reason=self._reason,
                role=self._role,
                capabilities=capabilities,
                offloaded=facts.offloaded,
                probe=self._engine.probe,
            )
        )
