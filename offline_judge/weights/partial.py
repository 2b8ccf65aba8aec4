"""A download under way: its partial file with the source's memory, and the lock of its pull."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

from offline_judge.errors import DownloadError
from offline_judge.weights.disk import read_json, storing, write_json


class PartialFile:
    """What has been fetched of one file from one source, and what is needed to go on.

    Args:
        folder: Folder of this file's downloads; made on the first write.
        kind: Kind of source; each keeps a partial file of its own.
        size: Bytes the whole file has.
    """

    def __init__(self, folder: Path, kind: str, size: int) -> None:
        self.folder = folder
        self.path = folder / f"{kind}.partial"
        self._state_path = folder / f"{kind}.json"
        self._whole = size
        self._file: BinaryIO | None = None

    @property
    def size(self) -> int:
        """Bytes fetched so far."""
        if self._file is not None:
            return self._file.tell()
        try:
            return self.path.stat().st_size
        except FileNotFoundError:
            return 0

    @property
    def state(self) -> dict[str, Any]:
        """What the source remembered with `remember`."""
        return read_json(self._state_path)

    def remember(self, state: dict[str, Any]) -> None:
        """Replace the source's memory, atomically."""
        with storing(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            write_json(self._state_path, state)

    def cut(self, size: int) -> None:
        """Keep the first `size` bytes only."""
        with storing(self.folder):
            if self.path.exists():
                os.truncate(self.path, size)

    def discard(self) -> None:
        """Keep nothing."""
        with storing(self.folder):
            self.path.unlink(missing_ok=True)
            self._state_path.unlink(missing_ok=True)

    @contextmanager
    def appending(self) -> Iterator[Callable[[bytes], int]]:
        """Open for appending; gives a function that adds a block and tells the new size.

        What was added before an error or a cancel stays, and is on the disk at the end.

        Raises:
            StorageError: the disk is full or cannot be written; what fits is kept.
        """
        with storing(self.path, self._whole - self.size):
            self.folder.mkdir(parents=True, exist_ok=True)
            file = self._file = self.path.open("ab")
        try:
            yield self._append
            with storing(self.path, self._whole - file.tell()):
                file.flush()
                os.fsync(file.fileno())
        except BaseException:
            # The first error says it all; closing writes what is still buffered, if it can.
            with suppress(OSError):
                file.close()
            raise
        finally:
            self._file = None
            file.close()

    def _append(self, block: bytes) -> int:
        file = self._file
        if file is None:
            raise ValueError("the partial file is not open")
        with storing(self.path, self._whole - file.tell()):
            file.write(block)
        return file.tell()


class PullLock:
    """Lets one process at a time fetch a file; the lock goes with the process that held it."""

    def __init__(self, path: Path, what: str) -> None:
        self._path = path
        self._what = what
        self._handle = -1

    def __enter__(self) -> PullLock:
        """Take the lock.

        Raises:
            DownloadError: another process has it; names its id.
            StorageError: the lock's folder cannot be written.
        """
        with storing(self._path):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._handle = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            with storing(self._path):
                owner = self._take()
        except BaseException:
            os.close(self._handle)
            raise
        if owner:
            os.close(self._handle)
            raise DownloadError(
                f"{self._what} is already being fetched by process {owner}.",
                where=str(self._path),
                remedy="Wait until it is done, or stop it; what it has fetched is kept.",
            )
        return self

    def _take(self) -> str:
        """Take the lock and write who has it; else tell who has."""
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return os.read(self._handle, 32).decode("ascii", "replace").strip() or "unknown"
        os.ftruncate(self._handle, 0)
        os.pwrite(self._handle, f"{os.getpid()}\n".encode(), 0)
        return ""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Let go. The file stays: removing it would let two processes lock two files."""
        os.close(self._handle)
