"""The lock on the vector index: one process at a time opens it, and a dead one holds nothing."""

from __future__ import annotations

import fcntl
import json
import os
from contextlib import suppress
from pathlib import Path

from offline_judge.errors import StorageError


class IndexLock:
    """The system's lock (flock) on a file; it ends with its holder, whatever kills that.

    Args:
        path: The file; made where absent. It names the holder's pid, for people.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    @property
    def descriptor(self) -> int:
        """To hand to a child, which then holds the lock as well, even when this process dies."""
        if self._descriptor is None:
            raise ValueError("the lock is not held")
        return self._descriptor

    def acquire(self) -> bool:
        """Take the lock; False where another process holds it.

        Raises:
            StorageError: the file cannot be opened, locked or written.
        """
        if self._descriptor is not None:
            return True
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise self._fault(error) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, json.dumps({"pid": os.getpid()}).encode() + b"\n", 0)
        except BlockingIOError:
            os.close(descriptor)
            return False
        except OSError as error:
            os.close(descriptor)
            raise self._fault(error) from error
        self._descriptor = descriptor
        return True

    def release(self) -> None:
        """Let go. Safe to call twice."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            with suppress(OSError):
                os.ftruncate(descriptor, 0)
            os.close(descriptor)

    def holder(self) -> int:
        """Pid of the process that said it holds the lock, 0 where none did."""
        try:
            return int(json.loads(self._path.read_bytes())["pid"])
        except (OSError, ValueError, TypeError, KeyError):
            return 0

    def holding(self) -> int:
        """Pid of the process that holds the lock now, 0 for none; nothing is made or written."""
        pid = self.holder()
        try:
            descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return 0
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return pid
        finally:
            os.close(descriptor)
        return 0

    def _fault(self, error: OSError) -> StorageError:
        return StorageError(
            f"The vector index cannot be locked: {error.strerror}",
            where=str(self._path),
            remedy="Keep `data_dir` on a local disk that you may write to.",
        )
