"""A server program and all it brought forth end with the run, whatever ends the run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from offline_judge.backends.launch_llama import BinaryLauncher
from offline_judge.backends.options import EngineOptions
from offline_judge.backends.process import ChildProcess, ChildSpec
from offline_judge.backends.programs import WARDEN
from offline_judge.errors import BackendStartError

PARENT = Path(__file__).with_name("parent_of_warden.py")
FAMILY = Path(__file__).with_name("family.py")

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="finds families in /proc")


def alive(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def gone(pids: list[int], within_s: float = 20.0) -> bool:
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        if not any(alive(pid) for pid in pids):
            return True
        time.sleep(0.02)
    return False


@contextmanager
def begun(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    """The parent, and the ids of child, grandchild and warden."""
    parent = subprocess.Popen(
        [sys.executable, str(PARENT), *arguments], stdout=subprocess.PIPE, text=True
    )
    with parent:
        assert parent.stdout is not None
        yield parent, [int(parent.stdout.readline()) for _ in range(3)]


def test_a_killed_run_leaves_nothing_of_a_server() -> None:
    with begun() as (parent, pids):
        assert all(alive(pid) for pid in pids)
        parent.send_signal(signal.SIGKILL)
        parent.wait()
        assert gone(pids)


def test_a_server_that_is_stopped_is_gone_with_its_family() -> None:
    with begun("stop") as (parent, pids):
        assert parent.wait(60) == 0
        assert gone(pids, 1.0)


async def test_a_server_that_ends_by_itself_takes_its_family_along() -> None:
    pids: list[int] = []

    def read(line: str) -> None:
        pids.append(int(line.split()[1]))

    child = ChildProcess(
        ChildSpec(
            script=WARDEN,
            config={
                "parent_pid": os.getpid(),
                "argv": [sys.executable, str(FAMILY), "fail"],
                "env": {},
            },
            name="a family",
            phase_timeouts_s={"load": 30.0},
            read_log=read,
        )
    )
    with pytest.raises(BackendStartError, match="exit status 3"):
        await child.start(lambda phase, detail="": None)
    assert len(pids) == 2
    assert gone(pids, 5.0)


async def test_a_program_that_is_not_there_is_told_by_its_name() -> None:
    child = ChildProcess(
        ChildSpec(
            script=WARDEN,
            config={"parent_pid": os.getpid(), "argv": ["/no/such/server"], "env": {}},
            name="a server",
            phase_timeouts_s={},
        )
    )
    with pytest.raises(BackendStartError, match=r"cannot run /no/such/server: No such file"):
        await child.start(lambda phase, detail="": None)


def test_a_llama_server_that_is_not_there_is_told_with_the_setting() -> None:
    with pytest.raises(BackendStartError, match=r"no program `/no/such`.*llama_server"):
        BinaryLauncher().spec(EngineOptions(program="/no/such"), "key", 4)


def test_a_program_that_is_no_llama_server_is_refused() -> None:
    with pytest.raises(BackendStartError, match="is no llama-server"):
        BinaryLauncher().spec(EngineOptions(program="/bin/echo"), "key", 4)


def fake_server(folder: Path, *flags: str) -> str:
    program = folder / "llama-server"
    listing = "\n".join(f"{flag} N" for flag in flags)
    program.write_text(f"#!/bin/sh\necho 'version: 7001 (abc)'\necho '{listing}'\n", "utf-8")
    program.chmod(0o755)
    return str(program)


def test_only_flags_that_the_release_knows_are_given(tmp_path: Path) -> None:
    known = ("--model", "--parallel", "--ctx-size", "--host", "--port", "--n-gpu-layers")
    options = EngineOptions(
        Path("m.gguf"), window=512, slots=3, program=fake_server(tmp_path, *known), gpu="off"
    )
    spec = BinaryLauncher().spec(options, "secret", 4)
    argv = spec.config["argv"]
    assert argv[argv.index("--ctx-size") + 1] == "1536"
    assert argv[argv.index("--n-gpu-layers") + 1] == "0"
    assert {part for part in argv if part.startswith("--")} == set(known)
    assert "secret" not in argv
    assert spec.config["env"] == {"LLAMA_API_KEY": "secret"}
