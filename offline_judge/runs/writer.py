"""Owns the writing of a trace: one whole line an event, durable where it matters."""

from __future__ import annotations

import os
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from offline_judge.domain.events import (
    AnyEvent,
    EngineStarted,
    ResponseWritten,
    RunFinished,
    RunStarted,
    SampleFinished,
)
from offline_judge.errors import StorageError
from offline_judge.protocols import TraceSink
from offline_judge.runs.atomic import full_error, storage_error, sync, sync_directory
from offline_judge.runs.blobs import BlobStore
from offline_judge.runs.lines import encode, fold_texts, parse_line
from offline_judge.runs.lock import RunLock

_DURABLE = (RunStarted, EngineStarted, ResponseWritten, SampleFinished, RunFinished)
_CHUNK = 64 * 1024
_TIME = "%Y-%m-%dT%H:%M:%S.%fZ"


class EventListener(Protocol):
    """Told each event once it is recorded; a `RunListener` is one. Must not raise."""

    def event(self, event: AnyEvent) -> None:
        """An event was recorded."""


class TraceWriter:
    """Appends events to one run's trace; the only one that does while it is open.

    What it wrote survives the death of the process; what ends with a `SampleFinished`, a
    `ResponseWritten`, a `RunFinished` or a start of run or engine survives a power cut too once
    `emit` has returned.
    Use from one thread at a time, and as a context manager.

    Args:
        directory: The run directory; its lock is taken and held until `close`.
        name: Names the file, `events-<name>.jsonl`.
        listener: Told each event after it is recorded.

    Raises:
        RunLockedError: another process writes to this run.
        TraceError: the last line of the file is damaged, other than cut short.
        StorageError: the file cannot be opened.
    """

    def __init__(
        self, directory: Path, *, name: str = "main", listener: EventListener | None = None
    ) -> None:
        self._path = directory / f"events-{name}.jsonl"
        self._run_id = directory.name
        self._listener = listener
        self._blobs = BlobStore(directory / "blobs.sqlite")
        self._lock = RunLock(directory / "lock")
        self._descriptor = -1
        self._size = 0
        self._next = 0
        self._last_time = ""
        self._torn = False
        self._lock.acquire()
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    @property
    def path(self) -> Path:
        """The file."""
        return self._path

    def emit(self, event: AnyEvent) -> None:
        """Stamp and record one event; nothing of it stays where this fails.

        Raises:
            ValueError: the event holds a number that JSON does not have (NaN, infinity).
            TypeError: it holds a value of a type that JSON does not have.
            StorageError: it could not be recorded; all that was recorded before is kept.
        """
        if self._descriptor < 0:
            raise StorageError("The trace is closed.", where=str(self._path))
        stamp = {"seq": self._next, "time": self._now()}
        stamped = event.model_copy(update=stamp)
        large: list[str] = []
        line = encode(fold_texts(stamped.model_dump(), large))
        # First the texts, then the line that names them: no line ever names a missing one.
        self._blobs.put(large)
        self._append(line)
        self._next += 1
        self._last_time = stamped.time
        if isinstance(event, _DURABLE):
            self._sync()
        if self._listener is not None:
            self._listener.event(stamped)

    def put_blob(self, text: str) -> str:
        """Keep a text, such as the source of a template, durably; returns its hash.

        Raises:
            StorageError: it could not be kept.
        """
        name = self._blobs.put([text])[0]
        self._blobs.sync()
        return name

    def close(self) -> None:
        """Let go of the run. Safe to call twice."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)
        self._blobs.close()
        self._lock.release()

    def __enter__(self) -> TraceWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open(self) -> None:
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        try:
            self._descriptor = os.open(self._path, flags, 0o600)
            end = os.fstat(self._descriptor).st_size
            self._size = self._after_newline(end)
            if self._size < end:
                os.ftruncate(self._descriptor, self._size)
            if self._size:
                last = self._last_line()
                self._next, self._last_time = last["seq"] + 1, str(last.get("time", ""))
            else:
                sync_directory(self._path.parent)
        except OSError as error:
            raise storage_error(error, self._path, run_id=self._run_id) from error

    def _after_newline(self, end: int) -> int:
        """The offset behind the last newline before `end`; 0 where there is none."""
        while end > 0:
            start = max(0, end - _CHUNK)
            found = os.pread(self._descriptor, end - start, start).rfind(b"\n")
            if found >= 0:
                return start + found + 1
            end = start
        return 0

    def _last_line(self) -> dict[str, Any]:
        start = self._after_newline(self._size - 1)
        data = os.pread(self._descriptor, self._size - start, start)
        # The number of a line is its `seq`; counting lines takes no parsing.
        return parse_line(data, self._path, self._count_lines(start))

    def _count_lines(self, end: int) -> int:
        offsets = range(0, end, _CHUNK)
        chunks = (os.pread(self._descriptor, min(_CHUNK, end - at), at) for at in offsets)
        return sum(chunk.count(b"\n") for chunk in chunks)

    def _append(self, line: bytes) -> None:
        if self._torn:
            raise StorageError(
                "The trace ends in a part of a line that could not be cut off.",
                where=str(self._path),
                remedy=f"Then: offline-judge resume {self._run_id}",
            )
        try:
            written = os.write(self._descriptor, line)
            if written < len(line):
                raise full_error(self._path, run_id=self._run_id)
            self._size += written
        except OSError as error:
            self._cut_back()
            raise storage_error(error, self._path, run_id=self._run_id) from error
        except BaseException:
            # Also an interrupt just behind the write: a line that is not counted must not stay.
            self._cut_back()
            raise

    def _cut_back(self) -> None:
        self._torn = True
        with suppress(OSError):
            os.ftruncate(self._descriptor, self._size)
            self._torn = False

    def _sync(self) -> None:
        self._blobs.sync()
        try:
            sync(self._descriptor)
        except OSError as error:
            raise storage_error(error, self._path, run_id=self._run_id) from error

    def _now(self) -> str:
        """The time, which never runs backwards within a file, whatever the clock does."""
        return max(datetime.now(UTC).strftime(_TIME), self._last_time)


SINK: type[TraceSink] = TraceWriter
