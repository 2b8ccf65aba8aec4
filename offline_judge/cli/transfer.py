"""Shows on stderr how a download goes: bytes, rate, source."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from offline_judge.cli.deaf import DeafStream
from offline_judge.cli.diagnostics import Diagnostics
from offline_judge.domain.numbers import duration, size
from offline_judge.domain.visible import visible

if TYPE_CHECKING:
    from types import TracebackType

PLAIN_INTERVAL_S = 10.0


class Pulled(Protocol):
    """How far a download is, as the API tells it."""

    @property
    def file(self) -> str:
        """Name of the file."""

    @property
    def phase(self) -> str:
        """`download`, `check`, `failed` (of one source), `note` or `done`."""

    @property
    def source(self) -> str:
        """Where the bytes come from."""

    @property
    def done(self) -> int:
        """Bytes done in this phase."""

    @property
    def total(self) -> int:
        """Bytes of the file."""

    @property
    def note(self) -> str:
        """For people."""


class Transfer:
    """Called with each step of a download; a context manager, so that a bar is taken down."""

    def __init__(
        self, diagnostics: Diagnostics, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._diagnostics = diagnostics
        self._clock = clock
        self._stage: tuple[str, str, str] | None = None
        self._began = (0.0, 0)
        self._next = 0.0
        self._bar: _Bar | None = None
        if not diagnostics.quiet and sys.stderr.isatty():
            self._bar = _Bar()

    def __enter__(self) -> Transfer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.close()

    def __call__(self, step: Pulled) -> None:
        """Show a step: always what is new, bytes now and then."""
        now = self._clock()
        if step.phase in ("failed", "note", "done"):
            self._line(_event(step), "" if step.phase == "done" else "yellow")
            return
        stage = (step.file, step.phase, step.source)
        if stage != self._stage:
            self._stage, self._began, self._next = stage, (now, step.done), now
            self._line(_opening(step), "")
        if self._bar is not None:
            self._bar.show(step, self._rate(step, now))
        elif now >= self._next:
            self._next = now + PLAIN_INTERVAL_S
            self._line(f"  {size(step.done)} of {size(step.total)}{self._rate(step, now)}", "")

    def _rate(self, step: Pulled, now: float) -> str:
        began, done = self._began
        if now <= began or step.done <= done:
            return ""
        rate = (step.done - done) / (now - began)
        return f", {size(rate)}/s, {duration((step.total - step.done) / rate)} left"

    def _line(self, text: str, style: str) -> None:
        if self._bar is not None:
            self._bar.line(text, style)
        else:
            self._diagnostics.note(text, style)


def _event(step: Pulled) -> str:
    if step.phase == "failed":
        return f"{step.source} failed: {step.note}"
    if step.phase == "note":
        return f"{step.source}: {step.note}"
    return f"{step.file}: {step.note or 'here, size and hash are right'}"


def _opening(step: Pulled) -> str:
    note = f" ({step.note})" if step.note else ""
    if step.phase == "download":
        return f"{step.file}: {size(step.total)} from {step.source}{note}"
    return f"{step.file}: checking size and hash{note}"


class _Bar:
    """A bar for terminals."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        file: Any = DeafStream(sys.stderr)
        self._console = Console(file=file, markup=False, highlight=False, emoji=False)
        text = TextColumn("{task.description}", markup=False)
        self._progress = Progress(
            BarColumn(bar_width=32),
            text,
            console=self._console,
            redirect_stdout=False,
            redirect_stderr=False,
            transient=True,
        )
        self._task = self._progress.add_task("", total=None)
        self._progress.start()

    def show(self, step: Pulled, rate: str) -> None:
        """Move the bar."""
        said = f"{size(step.done)} of {size(step.total)}{rate}"
        self._progress.update(self._task, total=step.total, completed=step.done, description=said)

    def line(self, text: str, style: str) -> None:
        """Print above the bar."""
        self._console.print(visible(text), style=style or None)

    def close(self) -> None:
        """Take the bar down."""
        self._progress.stop()
