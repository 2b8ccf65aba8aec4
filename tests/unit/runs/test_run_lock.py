"""The lock of a run: one holder, gone with its process however that ends."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import signal
import time
from pathlib import Path

import pytest
from runs_helpers import child

from offline_judge.errors import RunLockedError, StorageError
from offline_judge.runs import lock as lock_module
from offline_judge.runs.lock import Holder, RunLock, lock_holder

HOLD = """
import os, sys
from pathlib import Path
from offline_judge.runs.lock import RunLock
lock = RunLock(Path(sys.argv[1]))
lock.acquire()
if "fork" in sys.argv:
    pid = os.fork()
    if not pid:
        os.close(0)
        os.close(1)
        import signal
        signal.pause()
    print(pid, flush=True)
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "run-1").mkdir()
    return tmp_path / "run-1" / "lock"


def _line(path: Path, pid: int, start: str) -> None:
    path.write_text(json.dumps({"pid": pid, "start": start}) + "\n")


def test_a_second_process_is_refused_with_the_pid_of_the_first(path: Path) -> None:
    with child(HOLD, path) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(RunLockedError, match=f"{holder.pid} .*cancel run-1"):
            RunLock(path).acquire()
        found = lock_holder(path)
        holder.kill()
    assert found is not None
    assert found.pid == holder.pid


def test_a_killed_holder_is_taken_over_even_before_it_is_collected(path: Path) -> None:
    with child(HOLD, path) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        holder.kill()
        # Waits for its end but leaves the zombie.
        os.waitid(os.P_PID, holder.pid, os.WEXITED | os.WNOWAIT)
        assert json.loads(path.read_text())["pid"] == holder.pid
        assert lock_holder(path) is None
        with RunLock(path):
            assert json.loads(path.read_text())["pid"] == os.getpid()


def test_a_forked_child_does_not_keep_a_dead_parents_lock(path: Path) -> None:
    with child(HOLD, path, "fork") as holder:
        assert holder.stdout is not None
        orphan = int(holder.stdout.readline())
        assert holder.stdout.readline() == "held\n"
        try:
            with pytest.raises(RunLockedError):
                RunLock(path).acquire()
            holder.kill()
            holder.wait()
            os.kill(orphan, 0)
            with RunLock(path) as lock:
                assert lock.held
        finally:
            os.kill(orphan, signal.SIGKILL)


def test_a_reused_pid_is_not_the_holder(path: Path) -> None:
    _line(path, 1, "start of another process")
    with RunLock(path):
        assert json.loads(path.read_text())["pid"] == os.getpid()


def test_a_dead_pid_is_not_the_holder(path: Path) -> None:
    with child("pass") as gone:
        pass
    _line(path, gone.pid, "")
    with RunLock(path) as lock:
        assert lock.held


def test_a_living_holder_by_name_is_not_overruled_where_locks_do_not_reach(path: Path) -> None:
    with child(HOLD, path.with_name("other")) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        path.write_bytes(path.with_name("other").read_bytes())
        with pytest.raises(RunLockedError, match=str(holder.pid)):
            RunLock(path).acquire()
        assert json.loads(path.read_text())["pid"] == holder.pid
        holder.kill()


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"pid":"x","start":""}', b"\xff\0"])
def test_a_damaged_lock_file_is_no_holder(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    assert lock_holder(path) is None
    with RunLock(path) as lock:
        assert lock.held


def test_one_process_holds_it_once_and_can_take_it_again(path: Path) -> None:
    lock = RunLock(path)
    for _ in range(2):
        lock.acquire()
        with pytest.raises(RunLockedError):
            lock.acquire()
        with pytest.raises(RunLockedError, match=str(os.getpid())):
            RunLock(path).acquire()
        lock.release()
        lock.release()
        assert lock_holder(path) is None


def test_somebody_asking_for_the_holder_does_not_refuse_a_taker(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path.touch()
    asking = os.open(path, os.O_RDONLY)
    fcntl.flock(asking, fcntl.LOCK_SH)
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        fcntl.flock(asking, fcntl.LOCK_UN)

    monkeypatch.setattr(time, "sleep", pause)
    with RunLock(path) as lock:
        assert lock.held
    os.close(asking)
    assert len(pauses) == 1


def test_a_file_system_without_locks_is_named(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def flock(descriptor: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.raises(StorageError, match="local disk"):
        RunLock(path).acquire()


def test_a_run_removed_meanwhile_is_not_locked(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.open

    def open_then_remove(file: Path, flags: int, mode: int) -> int:
        descriptor = real(file, flags, mode)
        path.unlink()
        return descriptor

    monkeypatch.setattr(os, "open", open_then_remove)
    with pytest.raises(StorageError, match="removed"):
        RunLock(path).acquire()


def test_this_process_is_alive_and_another_start_is_not() -> None:
    start = lock_module._process_start(os.getpid())
    assert start
    assert Holder(os.getpid(), start).alive
    assert not Holder(os.getpid(), start + "1").alive
