"""Notes, while a run goes on, what each sample sends to the engine and how long it takes."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any

from replay_client import Request

from offline_judge.backends.wire import Framing, Wire
from offline_judge.domain.events import AnyEvent, CallFinished, SampleFinished, SampleStarted
from offline_judge.domain.progress import Preflight, Progress


@dataclass
class Call:
    """One completion: when it began and ended, and the body that was sent."""

    began: float
    body: dict[str, Any]
    ended: float = 0.0


@dataclass
class Recorded:
    """One sample of a run, in one lane."""

    began: float
    question: str = ""
    seconds: float = 0.0
    finished: bool = False
    calls: list[Call] = field(default_factory=list)
    events: list[AnyEvent] = field(default_factory=list)

    @property
    def generated(self) -> int:
        """Tokens the engine generated for it."""
        calls = [event for event in self.events if isinstance(event, CallFinished)]
        return sum(call.usage.completion_tokens for call in calls if not call.reused)

    def requests(self) -> list[Request]:
        """Its completions, each after those that had ended before it began."""
        return [
            Request(
                call.body,
                tuple(i for i, other in enumerate(self.calls[:at]) if other.ended <= call.began),
            )
            for at, call in enumerate(self.calls)
        ]


class Recorder:
    """A `RunListener`. A sample's time runs until the next one starts, so no gap is left out."""

    def __init__(self) -> None:
        self._samples: list[Recorded] = []

    def phase(self, phase: str, detail: str = "") -> None:
        """Say what is going on, since loading takes a while."""
        print(f"  {phase} {detail}".rstrip())

    def preflight(self, report: Preflight) -> None:
        """Say what is ahead."""
        print(f"  {report.planned} samples, {len(report.too_long)} too long")

    def progress(self, progress: Progress) -> None:
        """Nothing: the figures come at the end."""

    def event(self, event: AnyEvent) -> None:
        """Note the event with its sample."""
        now = time.perf_counter()
        if isinstance(event, SampleStarted):
            if self._samples:
                self._samples[-1].seconds = now - self._samples[-1].began
            self._samples.append(Recorded(now, event.sample.question))
        if self._samples and event.sample_id:
            self._samples[-1].events.append(event)
        if isinstance(event, SampleFinished):
            self._samples[-1].seconds = now - self._samples[-1].began
            self._samples[-1].finished = True

    def begin(self, body: dict[str, Any]) -> Call:
        """Note that a completion is about to be sent."""
        call = Call(time.perf_counter(), body)
        if self._samples:  # before the first sample the backend tries the engine out
            self._samples[-1].calls.append(call)
        return call

    def samples(self) -> list[Recorded]:
        """The samples that were finished and needed the engine at all."""
        return [sample for sample in self._samples if sample.finished and sample.calls]


@contextmanager
def recording(recorder: Recorder) -> Iterator[None]:
    """Let the recorder see every completion that any wire sends."""
    original = Wire.stream

    @asynccontextmanager
    async def stream(
        self: Wire, path: str, body: Any, framing: Framing = "sse"
    ) -> AsyncIterator[AsyncIterator[dict[str, Any]]]:
        call = recorder.begin(body)
        try:
            async with original(self, path, body, framing) as events:
                yield events
        finally:
            call.ended = time.perf_counter()

    Wire.stream = stream  # type: ignore[method-assign]  # a tap for the length of one benchmark
    try:
        yield
    finally:
        Wire.stream = original  # type: ignore[method-assign]  # and off again
