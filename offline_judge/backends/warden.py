"""Runs a server program so that nothing of it outlives this program, whatever kills either.

Run as a file, with the standard library only. Its one line of JSON on stdin says what to run; the
program's output goes to stderr. When stdin ends, which it does when the parent dies, the whole
family of the program is ended: first asked to, then killed.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PROC = Path("/proc")
_ASKED_S = 3.0
_POLL_S = 0.02


def main() -> int:
    """Run the program until it ends or stdin does; gives its exit status."""
    line = sys.stdin.buffer.readline()
    if not line:
        return 0
    config = json.loads(line)
    if os.getppid() != config["parent_pid"]:
        return 0
    report = os.dup(1)
    os.dup2(2, 1)
    # Children whose parent has died become children of this process instead of the system's, so
    # that those of a killed server are still found.
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: _end(0))
    try:
        program = subprocess.Popen(
            config["argv"],
            stdin=subprocess.DEVNULL,
            stdout=2,
            stderr=2,
            env={**os.environ, **config["env"]},
            cwd=config.get("cwd") or None,
            # Only where this process is killed itself does nobody else end the program.
            preexec_fn=lambda: _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL),  # noqa: PLW1509  no thread yet
        )
    except OSError as error:
        _tell(report, phase="failed", error=f"cannot run {config['argv'][0]}: {error.strerror}")
        return 1
    _tell(report, phase="load", server_pid=program.pid)
    threading.Thread(target=_end_with_stdin, daemon=True).start()
    status = program.wait()
    _end_family()
    return status if status >= 0 else 128 - status


def _end_with_stdin() -> None:
    while True:
        try:
            if not os.read(0, 4096):
                break
        except OSError:
            break
    _end(0)


def _end(status: int) -> None:
    _end_family()
    os._exit(status)


def _end_family() -> None:
    """End every descendant, those that have changed their process group included."""
    for number, patience_s in ((signal.SIGTERM, _ASKED_S), (signal.SIGKILL, _ASKED_S)):
        deadline = time.monotonic() + patience_s
        asked: set[int] = set()
        while time.monotonic() < deadline:
            alive = _descendants()
            if not alive:
                return
            for pid in alive - asked:
                _signal(pid, number)
            asked |= alive
            time.sleep(_POLL_S)


def _descendants() -> set[int]:
    """Living processes below this one; the dead among them are buried."""
    parents: dict[int, int] = {}
    for entry in _PROC.iterdir() if _PROC.is_dir() else ():
        if entry.name.isdigit() and (found := _parent(entry)) is not None:
            parents[int(entry.name)] = found
    below: set[int] = set()
    level = {os.getpid()}
    while level:
        level = {pid for pid, parent in parents.items() if parent in level} - below
        below |= level
    return below


def _parent(entry: Path) -> int | None:
    try:
        text = (entry / "stat").read_text(encoding="utf-8", errors="replace")
        state, parent = text.rpartition(")")[2].split()[:2]
    except (OSError, ValueError):
        return None
    if state == "Z":
        if int(parent) == os.getpid():
            _bury(int(entry.name))
        return None
    return int(parent)


def _bury(pid: int) -> None:
    try:
        os.waitpid(pid, os.WNOHANG)
    except OSError:
        return


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except OSError:
        return


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def _tell(report: int, **fields: Any) -> None:
    os.write(report, json.dumps(fields).encode() + b"\n")


if __name__ == "__main__":
    sys.exit(main())
