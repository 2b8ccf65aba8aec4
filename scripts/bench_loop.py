"""Samples an hour of `sage`, for those of the loop one would write with llama-cpp-python.

    python scripts/bench_loop.py --python PATH [--judge NAME] [--search NAME] [--data FILE]
                                 [--limit N] [--block N]

PATH is the interpreter of an environment with llama-cpp-python, built for this processor, and
jinja2. The loop is scripts/loop_llama_cpp_python.py, as it is and with a JSON schema on each
answer: the same model file, prompts, limits, rounds and search. The three take turns, a block of
questions at a time, so that a busy moment of the machine meets all; loading is on no side, and no
side has completions of earlier runs. Ratios are of sums of seconds over the same samples, with
intervals over questions.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from benching import bootstrap, machine

from offline_judge import api, wiring
from offline_judge.datasets.order import group_samples
from offline_judge.datasets.readers import read_samples
from offline_judge.domain.events import AnyEvent, SampleFinished, SampleStarted
from offline_judge.domain.progress import Preflight, Progress
from offline_judge.domain.sample import Sample
from offline_judge.protocols import SearchProvider
from offline_judge.registry import METHODS
from offline_judge.settings import Settings, load_settings

SCRIPTS = Path(__file__).resolve().parent
LOOP = SCRIPTS / "loop_llama_cpp_python.py"
SHIPPED = (SCRIPTS.parent / "offline_judge/demo/samples.jsonl", SCRIPTS / "bench_samples.jsonl")
METHOD = "sage"
LIMITS = {"loop": 1.5, "loop with schemas": 2.0}
SIDES = ("ours", *LIMITS)
MOST_LINES = 80


@dataclass
class Question:
    """One question's samples: seconds and verdicts of each side."""

    samples: Sequence[Sample]
    seconds: dict[str, float] = field(default_factory=dict)
    verdicts: dict[str, list[bool | None]] = field(default_factory=dict)


class Watch:
    """A `RunListener` that times samples; a sample's time runs until the next one starts."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = ("", 0.0)

    def phase(self, phase: str, detail: str = "") -> None:
        """Nothing."""

    def preflight(self, report: Preflight) -> None:
        """Nothing."""

    def progress(self, progress: Progress) -> None:
        """Nothing."""

    def event(self, event: AnyEvent) -> None:
        """Take the time."""
        now, (last, began) = time.perf_counter(), self._last
        if isinstance(event, (SampleStarted, SampleFinished)) and last:
            self.seconds[last] = now - began
        if isinstance(event, SampleStarted):
            self._last = (event.sample.id, now)


class Loop:
    """The hand-written loop in a child process; a context manager.

    Args:
        command: What starts it.
        search: Answers its searches.
    """

    def __init__(self, command: Sequence[str], search: SearchProvider) -> None:
        self._search = search
        self._child = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
        )

    def __enter__(self) -> Loop:
        return self

    def __exit__(self, *_: object) -> None:
        for pipe in (self._child.stdin, self._child.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()
        self._child.wait(30)

    def judge(self, sample: Sample) -> bool:
        """Let it judge one sample, and answer its searches meanwhile."""
        self._send({"question": sample.question, "response": sample.response})
        while True:
            said = self._heard()
            if "verdict" in said:
                return bool(said["verdict"])
            query, limit = said["search"], int(said["limit"])
            hits = asyncio.run(self._search.search(query, limit=limit))
            self._send([shown(hit.passage.id, hit.passage.title, hit.passage.text) for hit in hits])

    def _send(self, value: Any) -> None:
        assert self._child.stdin is not None
        self._child.stdin.write(json.dumps(value) + "\n")
        self._child.stdin.flush()

    def _heard(self) -> dict[str, Any]:
        assert self._child.stdout is not None
        line = self._child.stdout.readline()
        if not line:
            raise SystemExit(f"the loop has ended with {self._child.wait()}")
        found: dict[str, Any] = json.loads(line)
        return found


def shown(name: str, title: str, text: str) -> dict[str, str]:
    """A hit as the program shows it to its judge."""
    return {"id": name, "text": f"{title}: {text}" if title else text}


def by_loop(loop: Loop, questions: Sequence[Question], side: str) -> None:
    """Let a loop judge a block."""
    for question in questions:
        began = time.perf_counter()
        question.verdicts[side] = [loop.judge(sample) for sample in question.samples]
        question.seconds[side] = time.perf_counter() - began


def by_program(settings: Settings, questions: Sequence[Question], folder: Path) -> None:
    """Let the program judge a block, in a run of its own."""
    data = folder / "block.jsonl"
    samples = [sample for question in questions for sample in question.samples]
    rows = ({"id": s.id, "question": s.question, "response": s.response} for s in samples)
    data.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    watch = Watch()
    view = api.run(api.RunRequest(METHOD, data), settings, watch)
    verdicts = {row.id: row.verdict for row in view.rows}
    for question in questions:
        question.verdicts["ours"] = [verdicts[sample.id] for sample in question.samples]
        question.seconds["ours"] = sum(watch.seconds[sample.id] for sample in question.samples)


def ratio(questions: Sequence[Question], side: str) -> float:
    """Seconds of a loop for those of the program."""
    return sum(q.seconds[side] for q in questions) / sum(q.seconds["ours"] for q in questions)


def report(questions: Sequence[Question]) -> bool:
    """Print what came out; true where both limits are kept."""
    n = sum(len(question.samples) for question in questions)
    for side in SIDES:
        seconds = sum(question.seconds[side] for question in questions)
        same = sum(
            a == b
            for question in questions
            for a, b in zip(question.verdicts[side], question.verdicts["ours"], strict=True)
        )
        print(
            f"{side}: {seconds / n:.1f} s a sample, {3600 * n / seconds:.0f} samples an hour, "
            f"{same} of {n} verdicts as ours"
        )
    kept = True
    for side, least in LIMITS.items():
        found = ratio(questions, side)
        low, high = bootstrap(questions, partial(ratio, side=side))
        kept = kept and found >= least
        print(
            f"samples an hour, ours / {side}: {found:.2f} [{low:.2f}, {high:.2f}], "
            f"at least {least}, n = {n} samples of {len(questions)} questions"
        )
    return kept


def take(data: Path, settings: Settings, limit: int | None) -> list[Question]:
    """Whole questions in the fixed random order, until there are `limit` samples."""
    taken: list[Question] = []
    for group in group_samples(read_samples(data).samples, seed=settings.seed):
        left = None if limit is None else limit - sum(len(one.samples) for one in taken)
        if left is not None and left <= 0:
            break
        taken.append(Question(group[:left]))
    return taken


def measure(
    settings: Settings, questions: Sequence[Question], python: str, block: int, folder: Path
) -> None:
    """Let all sides judge all questions, block by block, each side being first in turn."""
    card = wiring.model_card(settings.judge, settings)
    model = str(wiring.model_store(settings).path(card))
    prompts = str(SCRIPTS.parent / METHODS.package(METHOD).replace(".", "/") / "prompts")
    threads = str(settings.threads or len(os.sched_getaffinity(0)))
    command = [python, str(LOOP), model, prompts, threads]
    search = wiring.open_search(settings, Watch())
    with Loop(command, search) as plain, Loop([*command, "json"], search) as schemas:
        for number, start in enumerate(range(0, len(questions), block)):
            part = questions[start : start + block]
            turns: list[Callable[[], None]] = [
                partial(by_program, settings, part, folder),
                partial(by_loop, plain, part, "loop"),
                partial(by_loop, schemas, part, "loop with schemas"),
            ]
            for turn in turns[number % 3 :] + turns[: number % 3]:
                turn()
            done = {side: sum(q.seconds[side] for q in part) for side in SIDES}
            print(f"block {number + 1}: {done}", file=sys.stderr)
    search.close()


def main() -> int:
    """Measure and print; 1 where a limit is missed or there are fewer than 20 samples."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--python", required=True, help="interpreter with llama-cpp-python")
    parser.add_argument("--judge", help="model card; default: the settings' judge")
    parser.add_argument("--search", help="corpus; default: the settings' search")
    parser.add_argument("--data", type=Path, help="JSONL; default: 24 shipped samples")
    parser.add_argument("--limit", type=int, help="samples at most")
    parser.add_argument("--block", type=int, default=2, help="questions at a time")
    given = parser.parse_args()
    settings = load_settings(
        {"judge": given.judge, "search": given.search, "cache": False, "lanes": 1}
    )
    lines = LOOP.read_text("utf-8").count("\n")
    assert lines <= MOST_LINES, f"the loop has {lines} lines"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data = given.data
        if data is None:
            data = folder / "samples.jsonl"
            data.write_text("".join(path.read_text("utf-8") for path in SHIPPED), "utf-8")
        questions = take(data, settings, given.limit)
        measure(settings, questions, given.python, given.block, folder)
    print(f"{settings.judge}, {settings.search}, {data.name}; {machine()}")
    kept = report(questions)
    n = sum(len(question.samples) for question in questions)
    if n < 20:
        print("fewer than 20 samples: no figure to quote")
    return int(not kept or n < 20)


if __name__ == "__main__":
    sys.exit(main())
