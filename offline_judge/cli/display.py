"""Shows a run on stderr while it runs: phases, what to expect, progress, warnings."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from offline_judge.cli.diagnostics import Diagnostics
from offline_judge.cli.screens import LiveScreen, PlainScreen, Screen
from offline_judge.domain.events import EngineStarted, SampleFinished, WarningRaised
from offline_judge.domain.judgment import Outcome
from offline_judge.domain.numbers import count, duration

if TYPE_CHECKING:
    from types import TracebackType

    from offline_judge.domain.events import AnyEvent
    from offline_judge.domain.progress import Preflight, Progress

SHOWN_FAILURES = 5
_FAILED = (Outcome.UNSCORED, Outcome.ERROR)


def open_screen(diagnostics: Diagnostics, clock: Callable[[], float] = time.monotonic) -> Screen:
    """A bar where stderr is a terminal, else lines."""
    if diagnostics.quiet or not sys.stderr.isatty():
        return PlainScreen(diagnostics, clock)
    return LiveScreen()


class Display:
    """A `RunListener` for people. Use as a context manager, so that a bar is taken down again."""

    def __init__(
        self,
        diagnostics: Diagnostics,
        *,
        screen: Screen | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._began = clock()
        self._screen = screen or open_screen(diagnostics, clock)
        self._in_flight = 0
        self._phase = ""
        self._failures = 0

    def __enter__(self) -> Display:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._screen.close()

    def phase(self, phase: str, detail: str = "") -> None:
        """Show what the engine or the run does now, and since when."""
        if phase == "drain":
            flying = f" {count(self._in_flight, 'sample')}" if self._in_flight else ""
            self._screen.line(
                f"finishing{flying or ' the samples'} in flight; press Ctrl-C again to cancel",
                "bold",
            )
            return
        said = f"{phase}: {detail}" if detail else phase
        begins, self._phase = phase != self._phase, phase
        elapsed = duration(self._clock() - self._began)
        self._screen.phase(f"[{elapsed}] {said}", begins=begins)

    def preflight(self, report: Preflight) -> None:
        """Tell beforehand what will be judged, what cannot be, and how long it may take."""
        reused = f", {report.reused:,} reused" if report.reused else ""
        estimate = f", about {duration(report.seconds)}" if report.seconds is not None else ""
        fits = report.window and not report.too_long  # without a judge there is no window
        fit = f", all fit the window of {report.window:,} tokens" if fits else ""
        self._screen.line(
            f"{count(report.planned, 'sample')} to judge{reused}{fit}{estimate}", "bold"
        )
        for note in report.notes:
            self._screen.line(note)
        if report.too_long:
            named = ", ".join(report.too_long[:SHOWN_FAILURES])
            more = len(report.too_long) - SHOWN_FAILURES
            self._screen.warn(
                f"{count(len(report.too_long), 'sample')} cannot fit the window of "
                f"{report.window:,} tokens and will be unscored: {named}"
                + (f" and {more:,} more" if more > 0 else "")
            )

    def event(self, event: AnyEvent) -> None:
        """Show warnings, engine restarts, and the first samples that could not be judged."""
        if isinstance(event, WarningRaised):
            place = f"{event.sample_id}: " if event.sample_id else ""
            self._screen.warn(f"{place}{event.message}")
        elif isinstance(event, EngineStarted) and event.restart:
            reason = f" ({event.reason})" if event.reason else ""
            self._screen.warn(f"the engine was restarted, number {event.restart}{reason}")
        elif isinstance(event, SampleFinished) and event.outcome in _FAILED:
            self._failure(event)

    def progress(self, progress: Progress) -> None:
        """Show where the run stands."""
        self._in_flight = len(progress.in_flight)
        self._screen.progress(progress)

    def _failure(self, event: SampleFinished) -> None:
        self._failures += 1
        if self._failures > SHOWN_FAILURES:
            return
        why = ": ".join(part for part in (event.reason, event.detail) if part)
        more = "; further ones are only counted" if self._failures == SHOWN_FAILURES else ""
        self._screen.line(f"{event.sample_id} {event.outcome.value} - {why}{more}", "yellow")
