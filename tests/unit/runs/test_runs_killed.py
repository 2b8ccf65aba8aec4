"""SIGKILL at random points and full disks: what was acknowledged is never lost."""

from __future__ import annotations

import json
import random
import signal
import time
from pathlib import Path

import pytest
from runs_helpers import child, new_run

from offline_judge.runs.reducer import UNFINISHED
from offline_judge.runs.store import RunDirectory, RunStore

WRITE = """
import itertools, resource, sys
from pathlib import Path
from runs_helpers import called, finished, searched, started
from offline_judge.domain.events import RunStarted
from offline_judge.errors import StorageError
from offline_judge.runs.store import RunDirectory
directory, first, limit = RunDirectory(Path(sys.argv[1])), int(sys.argv[2]), int(sys.argv[3])
if limit:
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
fills, wait = sys.argv[4:]
with directory.writer() as writer:
    writer.emit(RunStarted(planned=10**6, resumed=True))
    print("ready", flush=True)
    for number in itertools.count(first):
        name = str(number)
        try:
            writer.emit(started(name))
            for turn in range(20):
                text = f"{number} {turn} " * 300 if fills == "texts" else "the same " * 300
                answer = "" if fills == "texts" else "c" * 5000
                writer.emit(called(name, values={"text": text}, text=answer))
            if name == wait:
                print("waits", flush=True)
                sys.stdin.read()
            writer.emit(searched(name, text=f"{number % 7}" * 4000))
            writer.emit(finished(name))
        except StorageError as error:
            print(f"full {error}", flush=True)
            break
        print(name, flush=True)
"""


def _check(run: RunDirectory, acknowledged: set[str]) -> None:
    """Open it as resume does: no torn line, no gap, no lost sample, every text there."""
    with run.writer():
        data = (run.path / "events-main.jsonl").read_bytes()
    lines = data.split(b"\n")
    assert lines.pop() == b""
    assert [json.loads(line)["seq"] for line in lines] == list(range(len(lines)))
    events = list(run.events())
    assert len(events) == len(lines)
    state = run.state()
    assert acknowledged <= state.settled
    assert {
        row.sample_id for row in run.index().rows() if row.outcome != UNFINISHED
    } == state.settled
    assert {row.id for row in state.rows() if row.outcome == UNFINISHED} == set(state.unfinished)


def test_twenty_kills_at_random_points_lose_nothing(tmp_path: Path) -> None:
    draw = random.Random(7)
    run = new_run(tmp_path)
    acknowledged: set[str] = set()
    for _ in range(20):
        first = len(run.state().samples)
        with child(WRITE, run.path, first, 0, "texts", "never") as writer:
            assert writer.stdout is not None
            assert writer.stdout.readline() == "ready\n"
            for _ in range(draw.randrange(12)):
                acknowledged.add(writer.stdout.readline().strip())
            # Without a pause of random length each kill would hit the same place, behind an answer.
            time.sleep(draw.random() * 0.01)
            writer.kill()
            acknowledged |= {line.strip() for line in writer.stdout}
        assert writer.returncode == -signal.SIGKILL
        _check(run, acknowledged)
    assert len(acknowledged) > 40


def test_a_kill_in_the_middle_of_a_sample_leaves_it_unfinished(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    with child(WRITE, run.path, 0, 0, "texts", "2") as writer:
        assert writer.stdout is not None
        assert [writer.stdout.readline() for _ in range(4)] == ["ready\n", "0\n", "1\n", "waits\n"]
        writer.kill()
    _check(run, {"0", "1"})
    state = run.state()
    assert (state.unfinished, state.status) == (("2",), "interrupted")
    assert len(run.sample_events("2")) == 21


@pytest.mark.parametrize(
    ("fills", "file"), [("texts", "blobs.sqlite"), ("lines", "events-main.jsonl")]
)
def test_a_full_disk_loses_nothing_and_the_run_goes_on_after(
    tmp_path: Path, fills: str, file: str
) -> None:
    run = new_run(tmp_path)
    with child(WRITE, run.path, 0, 1024 * 1024, fills, "never") as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
        *acknowledged, last = [line.strip() for line in writer.stdout]
    assert writer.returncode == 0
    assert last.startswith("full ")
    assert file in last
    assert f"offline-judge resume {run.run_id}" in last
    assert len(acknowledged) > 2
    _check(run, set(acknowledged))
    with child(WRITE, run.path, 1000, 0, "texts", "never") as again:
        assert again.stdout is not None
        assert [again.stdout.readline() for _ in range(2)] == ["ready\n", "1000\n"]
        again.kill()
    _check(run, {*acknowledged, "1000"})


def test_a_run_killed_while_it_is_made_is_no_run(tmp_path: Path) -> None:
    script = """
import os, signal, sys
from pathlib import Path
from offline_judge.runs import store
from runs_helpers import manifest
store._as_json = lambda model: os.kill(os.getpid(), signal.SIGKILL)
store.RunStore(Path(sys.argv[1])).create(manifest(), files={"asked.jsonl": b"{}"})
"""
    with child(script, tmp_path / "runs") as maker:
        pass
    assert maker.returncode == -signal.SIGKILL
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["20260101-000000-aaaa"]
    assert RunStore(tmp_path / "runs").ids() == []
