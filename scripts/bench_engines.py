"""The same requests of `sage` on each engine that is here: rates, samples an hour, other verdicts.

The first engine judges the shipped samples with `sage` until 40 requests are together, whole
samples only; then every engine answers these very conversations in the same order, one at a time,
from a fresh start. Each way is written `NAME[,setting=value ...]`: `NAME` is what `--engine` takes
or, with a colon, a server as `--judge` takes it, and further settings go with it (`judge=CARD`
gives it the same weights in another form).

    scripts/bench_engines.py --judge CARD llama_cpp llama_server vllm-cpu,judge=CARD-hf
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from benching import machine
from scipy.stats import binomtest

from offline_judge import wiring
from offline_judge.api import demo_samples
from offline_judge.backends.passing import PassingBackend
from offline_judge.datasets.readers import read_samples
from offline_judge.domain.events import AnyEvent
from offline_judge.domain.message import (
    Constraint,
    Delta,
    Generation,
    Label,
    Labels,
    Message,
    Prompt,
    Sampling,
)
from offline_judge.domain.progress import Preflight, Progress
from offline_judge.errors import BackendResponseError, OfflineJudgeError, UnscoredError
from offline_judge.judge.choosing import ChosenLabel
from offline_judge.prompting.thinking import split_thinking
from offline_judge.protocols import Backend, MethodContext
from offline_judge.settings import Settings, load_settings

METHOD = "sage"
LIMIT = 40


@dataclass(frozen=True)
class Request:
    """What one call sends, in an engine's own terms not yet."""

    sample: int
    messages: tuple[Message, ...]
    affinity: str
    labels: tuple[Label, ...] = ()
    sampling: Sampling | None = None
    constraint: Constraint | None = None


@dataclass
class Answered:
    """What one way made of all requests."""

    name: str
    wall_s: float = 0.0
    start_s: float = 0.0
    read: int = 0
    read_s: float = 0.0
    written: int = 0
    written_s: float = 0.0
    invalid: int = 0
    samples: int = 0
    verdicts: list[str | None] = field(default_factory=list)
    shares: list[float | None] = field(default_factory=list)
    problem: str = ""


class Silent:
    """Watches a run and says nothing."""

    def phase(self, phase: str, detail: str = "") -> None:
        """Nothing."""

    def preflight(self, report: Preflight) -> None:
        """Nothing."""

    def event(self, event: AnyEvent) -> None:
        """Nothing."""

    def progress(self, progress: Progress) -> None:
        """Nothing."""

    def emit(self, event: AnyEvent) -> None:
        """Nothing."""


class Noting(PassingBackend):
    """A backend that passes everything on and notes what is asked."""

    def __init__(self, backend: Backend) -> None:
        super().__init__(backend)
        self.sample = 0
        self.requests: list[Request] = []

    async def generate(
        self,
        prompt: Prompt,
        sampling: Sampling,
        constraint: Constraint | None = None,
        *,
        affinity: str = "",
    ) -> AsyncIterator[Delta | Generation]:
        """Note the request and pass the answer on."""
        self.requests.append(
            Request(
                self.sample,
                prompt.messages,
                affinity,
                sampling=sampling,
                constraint=constraint,
            )
        )
        async for item in super().generate(prompt, sampling, constraint, affinity=affinity):
            yield item

    async def label_probabilities(
        self, prompt: Prompt, labels: Sequence[Label], *, affinity: str = ""
    ) -> Labels:
        """Note the request and pass the reading on."""
        self.requests.append(Request(self.sample, prompt.messages, affinity, tuple(labels)))
        return await super().label_probabilities(prompt, labels, affinity=affinity)


def note_requests(settings: Settings, wanted: int) -> list[Request]:
    """The requests of as many whole samples as bring at least so many."""
    return asyncio.run(_note_requests(settings, wanted))


async def _note_requests(settings: Settings, wanted: int) -> list[Request]:
    silent = Silent()
    with wiring.open_components(settings, METHOD, {}, silent) as parts:
        noting = Noting(parts.engine.backend)
        await noting.start(silent.phase)
        try:
            binder = parts.judges(noting)
            for sample in read_samples(demo_samples()).samples:
                if len(noting.requests) >= wanted:
                    break
                judge = binder.bind(sample.id, 0, silent)
                context = MethodContext(judge, parts.search, silent)
                try:
                    await parts.method.judge(sample, context)
                except UnscoredError as error:
                    print(f"  {sample.id}: {error}")
                noting.sample += 1
        finally:
            await noting.close()
    return noting.requests


def replay(way: str, settings: Settings, requests: Sequence[Request]) -> Answered:
    """Have one way answer all requests."""
    found = Answered(way, samples=len({request.sample for request in requests}))
    try:
        asyncio.run(_replay(settings, requests, found))
    except (OfflineJudgeError, OSError) as error:
        # One engine that cannot be had must not cost the figures of the others.
        found.problem = f"{type(error).__name__}: {error}"
    return found


async def _replay(settings: Settings, requests: Sequence[Request], found: Answered) -> None:
    slots = len({request.affinity for request in requests})
    engine, _ = wiring.make_engine(settings, min(slots, 8))
    backend = engine.backend
    begun = time.monotonic()
    await backend.start(lambda phase, detail="": print(f"  {found.name}: {phase} {detail}"))
    found.start_s = time.monotonic() - begun
    try:
        begun = time.monotonic()
        for request in requests:
            await _answer(backend, request, found)
        found.wall_s = time.monotonic() - begun
    finally:
        await backend.close()


async def _answer(backend: Backend, request: Request, found: Answered) -> None:
    prompt = await backend.prepare(request.messages)
    if request.labels and backend.capabilities.label_probabilities:
        labels = await backend.label_probabilities(
            prompt, request.labels, affinity=request.affinity
        )
        found.verdicts.append(labels.best())
        found.shares.append(labels.share(request.labels[0].name))
        if labels.inside < 0.5:
            found.invalid += 1
        _count(found, labels.usage.read_anew, labels.timings.prompt_s, 0, 0.0)
        return
    schema = ChosenLabel(request.labels) if request.labels else None
    sampling = request.sampling or Sampling(max_tokens=schema.max_tokens if schema else 16)
    constraint = schema.constraint if schema else request.constraint
    last: Any = None
    async for item in backend.generate(prompt, sampling, constraint, affinity=request.affinity):
        last = item
    if not isinstance(last, Generation):
        raise BackendResponseError("no end")
    usage, timings = last.usage, last.timings
    _count(
        found,
        usage.read_anew,
        timings.prompt_s,
        max(0, usage.completion_tokens - 1),
        timings.generate_s,
    )
    if schema is not None:
        try:
            found.verdicts.append(schema.parse(split_thinking(last.text)[1]).name)
        except UnscoredError:
            found.verdicts.append(None)
            found.invalid += 1
        found.shares.append(None)
    elif constraint is not None:
        try:
            json.loads(last.text)
        except ValueError:
            found.invalid += 1


def _count(found: Answered, read: int, read_s: float, written: int, written_s: float) -> None:
    found.read += read
    found.read_s += read_s
    found.written += written
    found.written_s += written_s


def report(ways: Sequence[Answered], requests: Sequence[Request]) -> None:
    """Print a line a way; verdicts are compared with the first."""
    first = ways[0]
    verdicts = sum(bool(request.labels) for request in requests)
    print(
        f"{len(requests)} requests of {first.samples} samples, {verdicts} of them readings of "
        "labels"
    )
    print("way | start s | read/s | written/s | samples an hour | ratio | invalid | other verdicts")
    for one in ways:
        if one.problem:
            print(f"{one.name} | {one.problem[:300]}")
            continue
        other = [
            (mine, theirs)
            for mine, theirs in zip(first.verdicts, one.verdicts, strict=True)
            if None not in (mine, theirs)
        ]
        differ = sum(mine != theirs for mine, theirs in other)
        ends = binomtest(differ, len(other)).proportion_ci(method="wilson")
        hour = 3600 * one.samples / one.wall_s
        ratio = first.wall_s / one.wall_s
        print(
            f"{one.name} | {one.start_s:.1f} | {_rate(one.read, one.read_s)} | "
            f"{_rate(one.written, one.written_s)} | {hour:.0f} | {ratio:.2f} | "
            f"{one.invalid} of {len(requests)} | "
            f"{differ} of {len(other)} [{ends.low:.2f}, {ends.high:.2f}]"
        )


def _rate(tokens: int, seconds: float) -> str:
    return f"{tokens / seconds:.1f}" if seconds > 0 else "-"


def way_settings(way: str, settings: Settings) -> Settings:
    """The settings of a way, as the module says it is written."""
    name, *pairs = way.split(",")
    changes: dict[str, Any] = {"judge": name} if ":" in name else {"engine": name}
    for pair in pairs:
        key, _, value = pair.partition("=")
        kind = type(getattr(Settings(), key))
        changes[key] = value == "true" if kind is bool else kind(value)
    return replace(settings, **changes)


def main() -> int:
    """Measure and print; 1 where fewer than two ways answered."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("ways", nargs="*", default=["llama_cpp"], help="engines, the first is 1")
    parser.add_argument("--judge", help="model card; default: the settings' judge")
    parser.add_argument("--limit", type=int, default=LIMIT, help="requests at least")
    parser.add_argument("--out", type=Path, help="write what each way answered as JSON, no texts")
    arguments = parser.parse_args()
    settings = load_settings({"judge": arguments.judge, "cache": False, "lanes": 1})
    requests = note_requests(way_settings(arguments.ways[0], settings), arguments.limit)
    print(f"{settings.judge}; {machine()}")
    ways = [replay(way, way_settings(way, settings), requests) for way in arguments.ways]
    report(ways, requests)
    if arguments.out is not None:
        arguments.out.write_text(json.dumps([vars(way) for way in ways], indent=1), "utf-8")
    return int(sum(not way.problem for way in ways) < 2)


if __name__ == "__main__":
    raise SystemExit(main())
