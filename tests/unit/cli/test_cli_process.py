"""The command line as a process of its own: imports, pipes, exit codes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = [sys.executable, "-m", "offline_judge"]


def program(*arguments: str, cwd: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PROGRAM, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=environment(cwd, **environ),
        timeout=60,
    )


def environment(folder: Path, **more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OFFLINE_")}
    return {**kept, "HOME": str(folder), "OFFLINE_JUDGE_DATA_DIR": str(folder / "data"), **more}


@pytest.mark.parametrize("arguments", [["--help"], ["run", "-h"], ["runs", "-h"], ["models", "-h"]])
def test_help_loads_nothing_that_is_slow(tmp_path: Path, arguments: list[str]) -> None:
    told = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "offline_judge", *arguments],
        capture_output=True,
        text=True,
        check=True,
        env=environment(tmp_path),
    )

    loaded = {line.rpartition("|")[2].strip().split(".")[0] for line in told.stderr.splitlines()}
    slow = {"pydantic", "textual", "chromadb", "torch", "xllamacpp", "httpx", "rich", "tantivy"}
    assert "click" in loaded
    assert not loaded & (slow | {"platformdirs", "asyncio", "sklearn", "jinja2"})


def test_help_into_a_closed_pipe_is_quiet(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [*PROGRAM, "--help"],
            stdout=writing,
            stderr=subprocess.PIPE,
            check=False,
            env=environment(tmp_path),
        )
    finally:
        os.close(writing)

    assert done.stderr == b""
    assert done.returncode == 0


def test_output_onto_a_full_disk_is_told(tmp_path: Path) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("this system has no /dev/full")
    with full.open("w") as file:
        done = subprocess.run(
            [*PROGRAM, "--help"],
            stdout=file,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            env=environment(tmp_path),
        )

    assert done.returncode == 1
    assert "disk is full" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_version_is_told(tmp_path: Path) -> None:
    done = program("--version", cwd=tmp_path)

    assert done.returncode == 0
    assert done.stdout.startswith("offline-judge 0.")


def test_a_piped_error_has_no_colour(tmp_path: Path) -> None:
    done = program("rum", cwd=tmp_path, FORCE_COLOR="1")

    assert done.returncode == 2
    assert "\x1b" not in done.stderr
    assert done.stdout == ""


def test_a_stream_closed_before_the_start_is_no_fault(tmp_path: Path) -> None:
    command = f'"{sys.executable}" -m offline_judge runs list >&-'
    done = subprocess.run(
        ["bash", "-c", command],
        capture_output=True,
        text=True,
        check=False,
        env=environment(tmp_path),
    )
    assert done.returncode == 0
    assert "Sorry" not in done.stderr
