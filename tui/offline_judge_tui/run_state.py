"""What is known of a run that is watched: filled by the thread that listens, read by the screen."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from offline_judge.domain.events import AnyEvent
    from offline_judge.domain.news import News
    from offline_judge.domain.progress import Preflight, Progress, Slots, TokenDelta
    from offline_judge.domain.run_rows import LogLine

TEXT = 4000
"""Characters that are kept of what a call writes."""
LOG = 1000
"""Lines that are kept of the log."""
_ROW_EVENTS = frozenset({"sample_started", "sample_finished"})


@dataclass(frozen=True)
class Writing:
    """What a call of a sample has written so far."""

    call: int
    stage: str
    text: str


class RunState:
    """The news of a run, added up. One thread takes news in, another reads.

    Attributes:
        version: Grows with everything that is to be seen.
        rows: Grows with everything that changes the table of samples.
        logged: Grows with the log.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self.version = 0
        self.rows = 0
        self.logged = 0
        self._phase = ("", "")
        self._preflight: Preflight | None = None
        self._progress: Progress | None = None
        self._slots: Slots | None = None
        self._writing: dict[str, Writing] = {}
        self._log: deque[LogLine] = deque(maxlen=LOG)
        self._ended = False

    def take(self, news: News, line: LogLine | None = None) -> None:
        """Add a piece; `line` is what it adds to the log."""
        with self._lock:
            self.version += 1
            if news.kind == "phase":
                self._phase = (news.phase, news.detail)
            elif news.preflight is not None:
                self._preflight = news.preflight
            elif news.progress is not None:
                self._progress = news.progress
            elif news.slots is not None:
                self._slots = news.slots
            elif news.delta is not None:
                self._write(news.delta)
            elif news.event is not None:
                self._event(news.event)
            if line is not None:
                self.logged += 1
                self._log.append(line)

    def begin_log(self, lines: list[LogLine]) -> None:
        """What the log held before it was watched; what is known already is not doubled."""
        with self._lock:
            self.version += 1
            self.logged += 1
            known = set(self._log)
            later = list(self._log)
            self._log.clear()
            self._log.extend(line for line in lines if line not in known)
            self._log.extend(later)

    def end(self) -> None:
        """The process has let go of the run."""
        with self._lock:
            self.version += 1
            self.rows += 1
            self._ended = True
            self._slots = None
            self._writing.clear()

    @property
    def phase(self) -> tuple[str, str]:
        """What the engine or the run does now, and more about it."""
        with self._lock:
            return self._phase

    @property
    def preflight(self) -> Preflight | None:
        """What was known before the first sample."""
        with self._lock:
            return self._preflight

    @property
    def progress(self) -> Progress | None:
        """Where the run stands; None before it was told."""
        with self._lock:
            return self._progress

    @property
    def slots(self) -> Slots | None:
        """What the engine's slots do."""
        with self._lock:
            return self._slots

    @property
    def writing(self) -> dict[str, Writing]:
        """What is being written, by sample."""
        with self._lock:
            return dict(self._writing)

    @property
    def log(self) -> list[LogLine]:
        """The last lines of the log, oldest first."""
        with self._lock:
            return list(self._log)

    @property
    def ended(self) -> bool:
        """No process works on the run any more."""
        with self._lock:
            return self._ended

    def _write(self, delta: TokenDelta) -> None:
        before = self._writing.get(delta.sample_id)
        text = before.text if before is not None and before.call == delta.call else ""
        if before is None or before.call != delta.call:
            text = "… " if delta.at else ""
        whole = (text + delta.text)[-TEXT:]
        self._writing[delta.sample_id] = Writing(delta.call, delta.stage, whole)

    def _event(self, event: AnyEvent) -> None:
        if event.event in _ROW_EVENTS:
            self.rows += 1
        if event.event == "sample_finished":
            self._writing.pop(event.sample_id, None)
