"""Owns the lock of a run: one process at a time may write, and a dead one holds nothing."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from offline_judge.errors import RunLockedError, StorageError
from offline_judge.runs.atomic import storage_error

_STATE_FIELD, _START_FIELD = 0, 19  # of /proc/<pid>/stat, counted behind the command's name
_TRIES, _PAUSE_S = 4, 0.02


@dataclass(frozen=True)
class Holder:
    """A process: its pid, and when it started in the system's own units (empty: not known)."""

    pid: int
    start: str

    @property
    def alive(self) -> bool:
        """This very process still runs; another one that got its pid does not count."""
        if not Path("/proc/self/stat").exists():
            return _answers(self.pid)
        found = _process_start(self.pid)
        return found is not None and (not self.start or found == self.start)


class RunLock:
    """The lock of one run directory, held from `acquire` to `release` or the process's end.

    The truth is the system's lock (flock) on the file, which ends with its holder whatever kills
    it. A forked child lets go of its copy, so that it cannot keep a dead parent's lock. What the
    file says about its holder is for people, and a second guard on file systems whose locks do
    not reach every process: a holder that is named and lives is not overruled.

    Args:
        path: The file `lock` of the run directory; made where absent.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    @property
    def held(self) -> bool:
        """This object holds the lock now."""
        return self._descriptor is not None

    def acquire(self) -> None:
        """Take the lock, also from a holder that has died.

        Raises:
            RunLockedError: another process holds it; names its pid.
            StorageError: the file cannot be opened, locked or written.
        """
        if self.held:
            raise RunLockedError("This process already writes to the run.", where=str(self._path))
        try:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise storage_error(error, self._path) from error
        try:
            self._take(descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor = descriptor
        _HELD.add(self)

    def release(self) -> None:
        """Let go. Safe to call twice."""
        descriptor, self._descriptor = self._descriptor, None
        _HELD.discard(self)
        if descriptor is not None:
            # The empty file says "released"; failing that, the lock itself still says so.
            with suppress(OSError):
                os.ftruncate(descriptor, 0)
            os.close(descriptor)

    def __enter__(self) -> RunLock:
        self.acquire()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()

    def _take(self, descriptor: int) -> None:
        try:
            _lock_file(descriptor)
            if not os.fstat(descriptor).st_nlink:
                raise FileNotFoundError(errno.ENOENT, "the run has just been removed")
            holder = _read_holder(descriptor)
            if holder is not None and holder.pid != os.getpid() and holder.alive:
                raise _refusal(holder, self._path)
            me = Holder(os.getpid(), _process_start(os.getpid()) or "")
            line = json.dumps({"pid": me.pid, "start": me.start}).encode() + b"\n"
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, line, 0)
        except BlockingIOError:
            raise _refusal(_read_holder(descriptor), self._path) from None
        except OSError as error:
            if error.errno in (errno.ENOLCK, errno.ENOTSUP):
                raise StorageError(
                    "The file system of the runs cannot lock files.",
                    where=str(self._path),
                    remedy="Keep `data_dir` on a local disk.",
                ) from error
            raise storage_error(error, self._path) from error

    def _forget(self) -> None:
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            with suppress(OSError):
                os.close(descriptor)


def lock_holder(path: Path) -> Holder | None:
    """Who holds the lock of a run; None where nobody does. Does not take it.

    A holder that cannot be told by name has pid 0.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _read_holder(descriptor) or Holder(0, "")
    except OSError:
        holder = _read_holder(descriptor)
        return holder if holder is not None and holder.alive else None
    finally:
        os.close(descriptor)
    return None


def _lock_file(descriptor: int) -> None:
    """Lock, with a few tries: somebody who only asks who holds it is in the way for an instant."""
    for left in reversed(range(_TRIES)):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if not left:
                raise
            time.sleep(_PAUSE_S)
        else:
            return


def _refusal(holder: Holder | None, path: Path) -> RunLockedError:
    run_id = path.parent.name
    if holder is None or not holder.pid:
        return RunLockedError(f"Another process owns run {run_id}.", where=str(path))
    remedy = f"Wait for it, or: offline-judge cancel {run_id}"
    if not holder.alive:
        remedy = "That process has ended, but one it left behind still holds the lock; end that."
    return RunLockedError(
        f"Process {holder.pid} owns run {run_id}.", where=str(path), remedy=remedy
    )


def _read_holder(descriptor: int) -> Holder | None:
    try:
        found = json.loads(os.pread(descriptor, 4096, 0))
        return Holder(int(found["pid"]), str(found["start"]))
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _process_start(pid: int) -> str | None:
    """When a process started; None where it is gone, or dead and only not yet collected."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    # The command's name may hold spaces and brackets; the last bracket ends it.
    fields = stat.rpartition(b")")[2].decode("ascii", "replace").split()
    if len(fields) <= _START_FIELD or fields[_STATE_FIELD] in ("Z", "X"):
        return None
    return fields[_START_FIELD]


def _answers(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _forget_all() -> None:
    for lock in tuple(_HELD):
        lock._forget()
    _HELD.clear()


_HELD: set[RunLock] = set()
os.register_at_fork(after_in_child=_forget_all)
