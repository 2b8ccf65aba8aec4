"""Two ways to show progress on stderr: a live bar, or a plain line now and then."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Protocol, TextIO

from offline_judge.cli.deaf import DeafStream
from offline_judge.cli.diagnostics import Diagnostics
from offline_judge.domain.numbers import count, duration
from offline_judge.domain.visible import shorten, visible

if TYPE_CHECKING:
    from offline_judge.domain.progress import Progress

PLAIN_INTERVAL_S = 10.0


class Screen(Protocol):
    """Where a run is shown."""

    def line(self, text: str, style: str = "") -> None:
        """A line that stays."""

    def warn(self, text: str) -> None:
        """A warning that stays."""

    def phase(self, text: str, *, begins: bool) -> None:
        """What goes on before the first sample; `begins` is false for more about the same."""

    def progress(self, progress: Progress) -> None:
        """Where the run stands."""

    def close(self) -> None:
        """Show the last word and let go of the terminal. Safe to call twice."""


def describe(progress: Progress) -> str:
    """Everything but done and planned, in the order of interest."""
    parts = [f"{progress.unscored:,} unscored"]
    if progress.samples_per_minute:
        parts.append(f"{progress.samples_per_minute:.1f}/min")
    if progress.left_s is not None and progress.finished < progress.planned:
        parts.append(f"{duration(progress.left_s)} left")
    if progress.tokens_per_s:
        parts.append(f"{progress.tokens_per_s:.1f} tokens/s")
    parts.append(f"{progress.read_anew:,} tokens read")
    return ", ".join(parts)


class PlainScreen:
    """Lines for files and pipes: at most one about progress in ten seconds, and the last one."""

    def __init__(self, diagnostics: Diagnostics, clock: Callable[[], float]) -> None:
        self._diagnostics = diagnostics
        self._clock = clock
        self._next = clock()
        self._next_phase = clock()
        self._unsaid: Progress | None = None
        self._said = ""

    def line(self, text: str, style: str = "") -> None:
        """Write a note."""
        self._diagnostics.note(text, style)

    def warn(self, text: str) -> None:
        """Write a warning."""
        self._diagnostics.warn(text)

    def phase(self, text: str, *, begins: bool) -> None:
        """Write a note; about the same phase only where the last one is ten seconds old."""
        if begins or self._clock() >= self._next_phase:
            self._next_phase = self._clock() + PLAIN_INTERVAL_S
            self._diagnostics.note(text, "dim")

    def progress(self, progress: Progress) -> None:
        """Write a line where the last one is ten seconds old."""
        self._unsaid = progress
        if self._clock() >= self._next:
            self._say()

    def close(self) -> None:
        """Write where the run stood in the end."""
        self._say()

    def _say(self) -> None:
        if self._unsaid is None:
            return
        done = f"{self._unsaid.finished:,}/{self._unsaid.planned:,} done"
        said = f"{done}, {describe(self._unsaid)}"
        # While an engine loads nothing moves, and a line that says the same again says nothing.
        if said != self._said:
            self._diagnostics.note(said)
        self._said, self._unsaid = said, None
        self._next = self._clock() + PLAIN_INTERVAL_S


class LiveScreen:
    """A bar at the bottom of a terminal; everything else scrolls above it."""

    def __init__(self, stream: TextIO | None = None) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, SpinnerColumn, TextColumn
        from rich.progress import Progress as Bar

        file: Any = DeafStream(stream or sys.stderr)
        self._console = Console(file=file, markup=False, highlight=False, emoji=False)
        self._bar = Bar(
            SpinnerColumn(),
            TextColumn("{task.fields[done]}", markup=False),
            BarColumn(bar_width=24),
            TextColumn("{task.description}", markup=False),
            console=self._console,
            refresh_per_second=4,
            # stdout is data: the bar must not swallow it.
            redirect_stdout=False,
            redirect_stderr=False,
            transient=True,
        )
        self._task = self._bar.add_task("", total=None, done="")
        self._last: Progress | None = None
        self._bar.start()

    def line(self, text: str, style: str = "") -> None:
        """Print above the bar."""
        self._print(visible(text, lines=True), style)

    def warn(self, text: str) -> None:
        """Print above the bar."""
        self._print(f"warning: {visible(text, lines=True)}", "yellow")

    def phase(self, text: str, *, begins: bool) -> None:
        """Show beside the bar, and keep a line of each phase."""
        if begins:
            self._print(visible(text), "dim")
        self._bar.update(self._task, description=shorten(text, 80))

    def progress(self, progress: Progress) -> None:
        """Move the bar."""
        self._last = progress
        done = f"{progress.finished:,}/{progress.planned:,}"
        self._bar.update(
            self._task,
            total=progress.planned,
            completed=progress.finished,
            description="\n".join((describe(progress), *_flights(progress.in_flight.items()))),
            done=done,
        )

    def close(self) -> None:
        """Take the bar down and leave its last figures."""
        self._bar.stop()
        if self._last is not None:
            done = f"{self._last.finished:,}/{self._last.planned:,} done"
            self._print(f"{done}, {describe(self._last)}", "")
            self._last = None

    def _print(self, text: str, style: str) -> None:
        self._console.print(text, style=style or None)


def _flights(in_flight: Iterable[tuple[str, str]]) -> list[str]:
    lines = [shorten(f"{sample}: {doing}", 70) for sample, doing in in_flight]
    return (
        lines if len(lines) <= 4 else [*lines[:3], f"and {count(len(lines) - 3, 'more', 'more')}"]
    )
