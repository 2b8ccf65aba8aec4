"""The engine's child gives up at once when nobody is there to own it."""

import json
import os
import subprocess
import sys

import pytest

from offline_judge.backends import llama_child


def _run(line: bytes) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-P", llama_child.__file__],
        input=line,
        capture_output=True,
        timeout=30,
        check=False,
    )


def test_a_pipe_that_ends_before_it_said_anything_is_the_end() -> None:
    done = _run(b"")
    assert (done.returncode, done.stdout) == (0, b"")


@pytest.mark.parametrize("stranger", [2**30, os.getppid()])
def test_a_child_whose_parent_is_somebody_else_loads_nothing(stranger: int) -> None:
    done = _run(json.dumps({"parent_pid": stranger}).encode() + b"\n")
    assert (done.returncode, done.stdout) == (0, b"")
