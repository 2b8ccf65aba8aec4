"""What the benchmark of the terminal UI stands on: a terminal to drive it in, and runs to show."""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from offline_judge.domain.events import CallFinished, SampleFinished, SampleStarted
from offline_judge.domain.judgment import Judgment, Outcome
from offline_judge.domain.message import Timings, Usage
from offline_judge.domain.progress import Progress, Slots, SlotState, TokenDelta
from offline_judge.domain.run import DataSource, ModelIdentity, RunManifest
from offline_judge.domain.sample import Sample
from offline_judge.runs.control import ControlServer
from offline_judge.runs.store import RunDirectory, RunStore
from offline_judge.runs.writer import TraceWriter
from offline_judge.settings import Settings

ROOT = Path(__file__).resolve().parents[1]
PATIENCE_S = 120.0
HASH = "0" * 64
SIZE = (45, 140)
EMPTY = (
    "from textual.app import App\n"
    "from textual.widgets import Static\n"
    "class Empty(App):\n"
    "    def compose(self): yield Static('ready')\n"
    "Empty().run()\n"
)


class Terminal:
    """A program on a terminal of its own; what it paints is waited for and timed.

    Args:
        command: The program.
        env: Its environment, over that of this process.
    """

    def __init__(self, command: Sequence[str], env: dict[str, str]) -> None:
        self._mine, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", *SIZE, 0, 0))
        self.began = time.perf_counter()
        self._process = subprocess.Popen(
            command,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor", **env},
            start_new_session=True,
        )
        os.close(theirs)
        self._said = b""

    def wait(self, pattern: str, *, patience_s: float = PATIENCE_S) -> float:
        """Seconds on the clock when a pattern was painted; what came before it is forgotten."""
        wanted, deadline = re.compile(pattern.encode()), time.perf_counter() + patience_s
        while not (found := wanted.search(self._said)):
            if time.perf_counter() > deadline:
                raise TimeoutError(f"{pattern!r} was never painted: {self._said[-600:]!r}")
            ready, _, _ = select.select([self._mine], [], [], 0.05)
            if ready:
                self._said += os.read(self._mine, 1 << 16)
        self._said = self._said[found.end() :]
        return time.perf_counter()

    def press(self, keys: str) -> float:
        """Press keys; gives the seconds on the clock."""
        self._said = b""
        began = time.perf_counter()
        os.write(self._mine, keys.encode())
        return began

    def settle(self, seconds: float) -> None:
        """Let it paint for a while."""
        end = time.perf_counter() + seconds
        while (left := end - time.perf_counter()) > 0:
            if select.select([self._mine], [], [], left)[0]:
                os.read(self._mine, 1 << 16)
        self._said = b""

    @property
    def peak_mb(self) -> float:
        """Most memory it has held so far, in MB."""
        status = Path(f"/proc/{self._process.pid}/status").read_text("ascii")
        found = re.search(r"VmHWM:\s+(\d+) kB", status)
        return int(found[1]) / 1000 if found else 0.0

    def end(self) -> None:
        """Let it go."""
        self._process.terminate()
        try:
            while self._process.poll() is None:
                self.settle(0.05)
        except OSError:
            self._process.wait(10)
        os.close(self._mine)


def environment(folder: Path) -> dict[str, str]:
    """Variables that keep the program away from the user's own files."""
    runtime = folder / "rt"
    runtime.mkdir(parents=True, exist_ok=True)
    return {
        "OFFLINE_JUDGE_DATA_DIR": str(folder / "data"),
        "OFFLINE_JUDGE_CACHE_DIR": str(folder / "cache"),
        "XDG_CONFIG_HOME": str(folder / "config"),
        "XDG_RUNTIME_DIR": str(runtime),
        "PYTHONPATH": f"{ROOT}:{ROOT / 'tui'}",
    }


def new_run(folder: Path, rows: int, *, created: str = "2026-01-01T00:00:00Z") -> RunDirectory:
    """A run without events."""
    store = RunStore(folder / "data" / "runs")
    manifest = RunManifest(
        run_id=store.new_id(),
        created=created,
        method="sage",
        data=DataSource(path="/data.jsonl", sha256=HASH, format="jsonl", rows=rows),
        judge=ModelIdentity(name="bench", sha256=HASH, engine="bench"),
    )
    return store.create(manifest)


def sample_id(number: int) -> str:
    """Of a sample by its number."""
    return f"s{number:06}"


def sample_lines(number: int, events: int) -> Iterator[str]:
    """The events of one sample as lines of a trace, without `seq` and `time`."""
    name = sample_id(number)
    started = SampleStarted(
        sample_id=name,
        sample=Sample(
            id=name,
            question=f"What is the population of city {number // 3} in {1900 + number % 100}?",
            response=f"It is about {17 * number} people.",
            label=number % 2 == 0,
        ),
    )
    yield started.model_dump_json(exclude={"seq", "time"})
    call = _call(name).model_dump_json(exclude={"seq", "time"})
    for _ in range(events - 2):
        yield call
    share = number * 7919 % 1000 / 1000
    judgment = Judgment(verdict=share >= 0.5, probability=share, rationale="It says so.")
    finished = SampleFinished(
        sample_id=name, outcome=Outcome.SCORED, judgment=judgment, seconds=12.5
    )
    yield finished.model_dump_json(exclude={"seq", "time"})


def write_large(folder: Path, samples: int, events: int) -> RunDirectory:
    """A run of so many samples with so many events each, all of them valid."""
    run = new_run(folder, samples)
    seq = 0
    with (run.path / "events-main.jsonl").open("w") as trace:

        def write(line: str) -> None:
            nonlocal seq
            seconds = seq / 100
            day, rest = divmod(int(seconds), 86400)
            clock = f"{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}.{seq % 100:02}0000"
            stamp = f"2026-01-{1 + day:02}T{clock}Z"
            trace.write(f'{{"seq":{seq},"time":"{stamp}",{line[1:]}\n')
            seq += 1

        write(f'{{"event":"run_started","sample_id":"","planned":{samples}}}')
        for number in range(samples):
            for line in sample_lines(number, events):
                write(line)
        write('{"event":"run_finished","sample_id":"","status":"completed"}')
    return run


def write_heavy(folder: Path, size: int) -> RunDirectory:
    """A run of one sample whose trace has about so many bytes."""
    run = new_run(folder, 1)
    text = "It was said again and again that the harbour bridge opened in that year. " * 1000
    with run.writer() as writer:
        name = sample_id(0)
        sample = Sample(id=name, question="What is it?", response="That.", label=True)
        writer.emit(SampleStarted(sample_id=name, sample=sample))
        while (run.path / "events-main.jsonl").stat().st_size < size:
            writer.emit(_call(name).model_copy(update={"text": text, "masses": None}))
        judgment = Judgment(verdict=True, probability=0.75)
        writer.emit(SampleFinished(sample_id=name, outcome=Outcome.SCORED, judgment=judgment))
    return run


def write_small(folder: Path, count: int) -> None:
    """Runs of one sample each, ended in good order."""
    for _ in range(count):
        run = new_run(folder, 1)
        with run.writer() as writer:
            for number in range(1):
                name = sample_id(number)
                sample = Sample(id=name, question="What is it?", response="That.")
                writer.emit(SampleStarted(sample_id=name, sample=sample))
                judgment = Judgment(verdict=True, probability=0.75)
                writer.emit(
                    SampleFinished(sample_id=name, outcome=Outcome.SCORED, judgment=judgment)
                )
        run.write_results(run.state().summary())


def _call(name: str) -> CallFinished:
    return CallFinished(
        sample_id=name,
        stage="relevance",
        template="sage/relevance",
        template_hash=HASH,
        values={"question": "What is the population?"},
        prompt_hash=HASH,
        masses={"relevant": 0.4, "irrelevant": 0.5},
        outside=0.1,
        usage=Usage(prompt_tokens=280, cached_tokens=120, completion_tokens=1),
        timings=Timings(prompt_s=0.8, generate_s=0.01),
    )


async def _serve(folder: Path, a_second: int) -> None:
    """A run that records and tells so many events a second, with slots, deltas and progress."""
    run = new_run(folder, 100_000)
    control = ControlServer(Settings().runtime_path, run.run_id, {})
    await control.start()
    with run.writer(listener=control) as writer:
        for number in range(500):
            _whole_sample(writer, number)
        sys.stdout.write(f"{run.run_id}\n")
        sys.stdout.flush()
        number, tick = 500, 0
        while True:
            # Ten steps a second, as an engine with many slots would make them.
            for _ in range(a_second // 50):
                _whole_sample(writer, number)
                number += 1
            tick += 1
            name = sample_id(number)
            state = SlotState(tick, name, 0, "relevance", "reading", tick % 280, 280)
            control.slots(Slots(8, (state,)))
            control.delta(TokenDelta(tick, name, 0, "relevance", 0, f"piece {tick} "))
            control.progress(Progress(100_000, number, in_flight={name: "relevance: reading"}))
            await asyncio.sleep(0.1)


def _whole_sample(writer: TraceWriter, number: int) -> None:
    name = sample_id(number)
    sample = Sample(id=name, question=f"What is it, {number}?", response="That.", label=True)
    writer.emit(SampleStarted(sample_id=name, sample=sample))
    for _ in range(3):
        writer.emit(_call(name))
    judgment = Judgment(verdict=number % 2 == 0, probability=number % 100 / 100)
    writer.emit(SampleFinished(sample_id=name, outcome=Outcome.SCORED, judgment=judgment))


class Stream:
    """`_serve` in a process of its own.

    Args:
        folder: Where its run is.
        a_second: Events that it records and tells.
    """

    def __init__(self, folder: Path, a_second: int) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__, str(folder), str(a_second)],
            env={**os.environ, **environment(folder)},
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        self.run_id = self._process.stdout.readline().strip()

    def end(self) -> None:
        """Let it go."""
        self._process.send_signal(signal.SIGKILL)
        self._process.communicate()


if __name__ == "__main__":
    asyncio.run(_serve(Path(sys.argv[1]), int(sys.argv[2])))
