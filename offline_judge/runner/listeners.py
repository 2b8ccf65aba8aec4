"""Listeners of a run as the runner uses them: several as one, none of which can hurt the run."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from offline_judge.domain.events import AnyEvent
from offline_judge.domain.progress import Preflight, Progress
from offline_judge.protocols import RunListener

_log = logging.getLogger(__name__)


class SafeListeners:
    """Tells several listeners; one that raises is told nothing more, and the run goes on."""

    def __init__(self, listeners: Iterable[RunListener | None] = ()) -> None:
        self._listeners = [listener for listener in listeners if listener is not None]

    def add(self, listener: RunListener) -> None:
        """Tell one more listener from now on."""
        self._listeners.append(listener)

    def phase(self, phase: str, detail: str = "") -> None:
        """Pass a phase on."""
        self._tell(lambda listener: listener.phase(phase, detail))

    def preflight(self, report: Preflight) -> None:
        """Pass the preflight report on."""
        self._tell(lambda listener: listener.preflight(report))

    def event(self, event: AnyEvent) -> None:
        """Pass an event on."""
        self._tell(lambda listener: listener.event(event))

    def progress(self, progress: Progress) -> None:
        """Pass progress on."""
        self._tell(lambda listener: listener.progress(progress))

    def _tell(self, call: Callable[[RunListener], None]) -> None:
        for listener in tuple(self._listeners):
            try:
                call(listener)
            except Exception:  # noqa: BLE001 - a listener is the caller's code: it must not end a run of hours
                _log.exception("a listener of the run failed and is told nothing more")
                self._listeners.remove(listener)
