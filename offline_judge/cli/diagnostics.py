"""Owns stderr and exit codes: notes, warnings, hints, errors and what they are called."""

from __future__ import annotations

import contextlib
import os
import sys
from dataclasses import dataclass

from offline_judge.domain.visible import visible
from offline_judge.errors import OfflineJudgeError

DONE = 0
FAILED = 1
BELOW = 100
INTERRUPTED = 130

EXIT_CODES = (
    (0, "done"),
    (1, "failed"),
    (2, "wrong usage, settings or data"),
    (3, "a package or a model is missing, or weights are wrong"),
    (4, "the inference engine is unavailable"),
    (5, "search is unavailable"),
    (100, "finished below a threshold you set"),
    (130, "interrupted"),
)

_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}


def wants_colour(stream: object) -> bool:
    """Whether `stream` is a terminal that takes colours and the user did not say no."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    isatty = getattr(stream, "isatty", None)
    return bool(isatty and isatty())


def paint(text: str, style: str) -> str:
    """`text` in a style of space-separated words; unknown words are left out."""
    codes = [_CODES[word] for word in style.split() if word in _CODES]
    return f"\x1b[{';'.join(codes)}m{text}\x1b[0m" if codes else text


@dataclass(frozen=True)
class Diagnostics:
    """Writes to stderr. `quiet` leaves out notes and hints; warnings and errors stay."""

    quiet: bool = False

    def note(self, text: str, style: str = "") -> None:
        """Narration: what happens, for people."""
        if not self.quiet:
            self._write(text, style)

    def hint(self, text: str) -> None:
        """What to type next."""
        self.note(text, "dim")

    def warn(self, text: str) -> None:
        """Something a reader of the results must know."""
        self._write(f"warning: {text}", "yellow")

    def error(self, text: str) -> None:
        """Why the command failed."""
        self._write(f"error: {text}", "red")

    def failure(self, error: OfflineJudgeError) -> None:
        """One of our own errors: what is wrong, where, and the remedy, a line each."""
        self.error(error.message)
        if error.where:
            self._write(f"  at {error.where}", "")
        if error.remedy:
            self._write(f"  {error.remedy}", "bold")

    def _write(self, text: str, style: str) -> None:
        line = visible(text, lines=True)
        if wants_colour(sys.stderr):
            line = paint(line, style)
        # Whoever read our narration may be gone; that must not end a run.
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write(f"{line}\n")
            sys.stderr.flush()
