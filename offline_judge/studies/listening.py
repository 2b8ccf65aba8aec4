"""What a watcher of a study is told: the study as a whole, not each of its small steps."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from offline_judge.domain.events import AnyEvent, CallFinished, SampleFinished, WarningRaised
from offline_judge.domain.judgment import Outcome
from offline_judge.domain.progress import Preflight, Progress
from offline_judge.protocols import RunListener
from offline_judge.runner.listeners import SafeListeners
from offline_judge.runs.reducer import RunState

_FINAL = (Outcome.SCORED, Outcome.UNSCORED, Outcome.ERROR)
_STEPS = ("preflight", "control")
"""Phases that every question goes through under every condition."""


class StudyEars:
    """Passes on what concerns the whole study, and counts judgments of all conditions together.

    Args:
        listener: Whom to tell.
        planned: Judgments of all conditions.
        clock: Monotonic seconds.
    """

    def __init__(
        self,
        listener: RunListener | None,
        planned: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._listeners = SafeListeners([listener])
        self._clock = clock
        self._began: float | None = None
        self._planned = planned
        self._had = 0
        self._finished = 0
        self._unscored = 0
        self._read_anew = 0
        self._written = 0
        self._write_s = 0.0
        self._told: set[str] = set()

    def had(self, judgments: int) -> None:
        """Count judgments that earlier processes made."""
        self._had += judgments

    def phase(self, phase: str, detail: str = "") -> None:
        """Pass on phases of the engine and of stopping."""
        if phase not in _STEPS:
            self._listeners.phase(phase, detail)

    def preflight(self, report: Preflight) -> None:
        """Pass on that something is too long; else a question is too small a step to be told."""
        if report.too_long:
            self._listeners.preflight(report)

    def event(self, event: AnyEvent) -> None:
        """Count an event and pass it on; a warning that was given before is not repeated."""
        match event:
            case SampleFinished() if event.outcome in _FINAL:
                self._finished += 1
                self._unscored += event.outcome is not Outcome.SCORED
            case CallFinished(reused=False):
                self._read_anew += event.usage.read_anew
                written, seconds = event.writing
                self._written += written
                self._write_s += seconds
            case WarningRaised():
                if event.message in self._told:
                    return
                self._told.add(event.message)
        self._listeners.event(event)

    def progress(self, progress: Progress) -> None:
        """Tell where the study stands; of the run's own progress only what is in flight."""
        self._began = self._clock() if self._began is None else self._began
        elapsed = self._clock() - self._began
        rate = self._finished / elapsed if elapsed > 0 else 0.0
        finished = self._had + self._finished
        left = max(0, self._planned - finished) / rate if rate > 0 else None
        self._listeners.progress(
            Progress(
                planned=max(self._planned, finished),
                finished=finished,
                unscored=self._unscored,
                elapsed_s=elapsed,
                samples_per_minute=60 * rate,
                left_s=left,
                tokens_per_s=self._written / self._write_s if self._write_s > 0 else 0.0,
                read_anew=self._read_anew,
                in_flight=progress.in_flight,
            )
        )


class ConditionEars:
    """Listens to the run of one condition: keeps its state up to date and tells the study."""

    def __init__(self, name: str, state: RunState, study: StudyEars) -> None:
        self._name = name
        self._state = state
        self._study = study

    def phase(self, phase: str, detail: str = "") -> None:
        """Tell the study."""
        self._study.phase(phase, detail)

    def preflight(self, report: Preflight) -> None:
        """Tell the study."""
        self._study.preflight(report)

    def event(self, event: AnyEvent) -> None:
        """Take the event in and tell the study."""
        self._state.apply(event)
        self._study.event(event)

    def progress(self, progress: Progress) -> None:
        """Tell the study, naming the condition."""
        named = {f"{self._name} {sample}": doing for sample, doing in progress.in_flight.items()}
        self._study.progress(replace(progress, in_flight=named))
