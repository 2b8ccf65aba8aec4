"""Runs of the real command line in a process of its own, watched through their trace."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import offline_judge
from offline_judge.domain.events import AnyEvent, SampleFinished, SampleStarted
from offline_judge.domain.judgment import Outcome
from offline_judge.runs.store import RunDirectory, RunStore

PATIENCE_S = 30.0
POLL_S = 0.002
FINAL = (Outcome.SCORED, Outcome.UNSCORED)


@dataclass
class Workplace:
    """A folder with data, a script for the judge and settings that meet nobody's own files."""

    path: Path
    env: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        runtime = self.path / "rt"
        runtime.mkdir(mode=0o700, parents=True)
        root = str(Path(str(offline_judge.__file__)).parents[1])
        kept = {k: v for k, v in os.environ.items() if not k.startswith("OFFLINE_JUDGE_")}
        self.env = kept | {
            "PYTHONPATH": root,
            "HOME": str(self.path),
            "XDG_CONFIG_HOME": str(self.path / "config"),
            "XDG_RUNTIME_DIR": str(runtime),
            "OFFLINE_JUDGE_DATA_DIR": str(self.path / "data"),
            "OFFLINE_JUDGE_CACHE_DIR": str(self.path / "cache"),
            # Answers of an earlier process must not stand in for a sample judged again.
            "OFFLINE_JUDGE_CACHE": "false",
        }

    @property
    def data(self) -> Path:
        """The data file."""
        return self.path / "data.jsonl"

    def write_data(self, count: int) -> None:
        """A labelled data file, two samples a question."""
        rows = (
            {"id": f"s{n:02}", "question": f"Who is {n // 2}?", "response": f"The {n}th."}
            for n in range(count)
        )
        self.data.write_text("".join(json.dumps(row) + "\n" for row in rows))

    def write_script(self, **script: Any) -> str:
        """A script for the judge; gives its name as `--judge` takes it."""
        path = self.path / "script.json"
        path.write_text(json.dumps(script))
        return f"scripted:{path}"

    def start(self, *arguments: str, file_limit: int | None = None) -> subprocess.Popen[str]:
        """Start the command line; no file it writes may grow beyond `file_limit` bytes."""
        child = subprocess.Popen(
            [sys.executable, "-m", "offline_judge", *arguments],
            cwd=self.path,
            env=self.env,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        if file_limit is not None:
            resource.prlimit(child.pid, resource.RLIMIT_FSIZE, (file_limit, file_limit))
        return child

    def finish(self, *arguments: str) -> tuple[int, str, str]:
        """Run the command line to its end: exit code, stdout, stderr."""
        return ended(self.start(*arguments))

    def run_arguments(self, judge: str, *more: str) -> tuple[str, ...]:
        """Arguments that judge the data file."""
        return ("run", "direct", "--data", str(self.data), "--judge", judge, *more)

    def newest(self) -> RunDirectory:
        """The newest run."""
        return RunStore(self.path / "data" / "runs").open("last")

    def trace(self) -> Path:
        """The trace of the only run; its folder need not be there yet."""
        found = sorted((self.path / "data" / "runs").glob("*/events-main.jsonl"))
        return found[-1] if found else self.path / "none-yet"

    def trace_size(self) -> int:
        """Bytes of the trace so far."""
        path = self.trace()
        return path.stat().st_size if path.exists() else 0

    def finished(self) -> int:
        """Samples finished so far, by lines of the trace."""
        path = self.trace()
        return path.read_bytes().count(b'"event":"sample_finished"') if path.exists() else 0

    def started(self) -> int:
        """Samples taken up so far."""
        path = self.trace()
        return path.read_bytes().count(b'"event":"sample_started"') if path.exists() else 0


def ended(child: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Wait for the end: exit code, stdout, stderr."""
    out, err = child.communicate(timeout=PATIENCE_S)
    return child.returncode, out, err


def wait_until(what: Callable[[], bool], child: subprocess.Popen[str]) -> None:
    """Wait for something a child does; fails if the child ends before.

    A trace is a file, and a file is watched by looking at it again and again.
    """
    deadline = time.monotonic() + PATIENCE_S
    while not what():
        assert child.poll() is None, child.communicate()
        assert time.monotonic() < deadline, "nothing happened"
        time.sleep(POLL_S)


def final_counts(events: list[AnyEvent]) -> dict[str, int]:
    """How often each sample taken up came to a final outcome."""
    counts = {event.sample_id: 0 for event in events if isinstance(event, SampleStarted)}
    for event in events:
        if isinstance(event, SampleFinished) and event.outcome in FINAL:
            counts[event.sample_id] += 1
    return counts


def judged_again(events: list[AnyEvent]) -> list[str]:
    """Samples taken up again after they had come to a final outcome."""
    settled: set[str] = set()
    again = []
    for event in events:
        if isinstance(event, SampleFinished) and event.outcome in FINAL:
            settled.add(event.sample_id)
        elif isinstance(event, SampleStarted) and event.sample_id in settled:
            again.append(event.sample_id)
    return again


def probabilities(directory: RunDirectory) -> dict[str, float | None]:
    """What each sample came to."""
    return {row.id: row.probability for row in directory.state().rows()}
