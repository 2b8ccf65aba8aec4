"""One process of a run: events in order, stops at every phase, failures that end it well."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

import pytest

from offline_judge.backends.script import Fault, ScriptOptions
from offline_judge.backends.scripted import ScriptedBackend
from offline_judge.domain.events import AnyEvent, EngineStarted, RunFinished, WarningRaised
from offline_judge.domain.judgment import Judgment
from offline_judge.domain.message import Label, Message, Prompt
from offline_judge.domain.progress import Preflight, Progress, Slots, TokenDelta
from offline_judge.domain.sample import Sample
from offline_judge.errors import BackendCrashedError, BackendStartError, StorageError
from offline_judge.protocols import Backend, Judge, MethodContext, StartListener, TraceSink, Values
from offline_judge.runner.engine import Engine
from offline_judge.runner.execution import Execution, execute
from offline_judge.runner.listeners import SafeListeners
from offline_judge.runner.plan import make_plan
from offline_judge.runner.progress import Meter
from offline_judge.runner.stopping import StopSwitch

LABELS = (Label(name="true", text="Yes"), Label(name="false", text="No"))


class LabelJudge:
    """Just enough of a judge: reads labels, and once more after a crash."""

    def __init__(self, backend: Backend, lane: int) -> None:
        self._backend = backend
        self._lane = lane

    async def verdict(self, text: str) -> Judgment:
        prompt = await self._backend.prepare([Message(role="user", content=text)])
        affinity = f"{self._lane}/verdict"
        try:
            labels = await self._backend.label_probabilities(prompt, LABELS, affinity=affinity)
        except BackendCrashedError:
            labels = await self._backend.label_probabilities(prompt, LABELS, affinity=affinity)
        return Judgment(verdict=labels.best() == "true", probability=labels.share("true"))


class LabelJudges:
    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def bind(self, sample_id: str, lane: int, trace: TraceSink) -> Judge:
        judge: Any = LabelJudge(self._backend, lane)
        return judge  # type: ignore[no-any-return]  # a fake of one method, see LabelJudge


class ReadOnce:
    name: ClassVar[str] = "read-once"
    searches: ClassVar[bool] = False
    stages = ("verdict",)

    @property
    def options(self) -> dict[str, Any]:
        return {}

    def largest_prompts(self, sample: Sample) -> tuple[tuple[str, Values, int], ...]:
        return (("verdict", {"text": sample.response}, 4),)

    async def judge(self, sample: Sample, context: MethodContext) -> Judgment:
        judge: Any = context.judge
        found: Judgment = await judge.verdict(sample.response)
        return found


class FakeRendered:
    def __init__(self, text: str) -> None:
        self.messages = (Message(role="user", content=text),)


class MemoryTrace:
    def __init__(self) -> None:
        self.events: list[AnyEvent] = []
        self.full_at: str = ""

    def emit(self, event: AnyEvent) -> None:
        if event.event == self.full_at:
            raise StorageError("no space left")
        self.events.append(event)

    def kinds(self) -> list[str]:
        return [event.event for event in self.events]

    def end(self) -> RunFinished:
        last = self.events[-1]
        assert isinstance(last, RunFinished)
        return last


class Ears:
    """A listener that remembers, and may act on a phase."""

    def __init__(self) -> None:
        self.phases: list[str] = []
        self.reports: list[Preflight] = []
        self.standings: list[Progress] = []
        self.on: dict[str, Callable[[], None]] = {}

    def phase(self, phase: str, detail: str = "") -> None:
        self.phases.append(phase)
        self.on.get(phase, lambda: None)()

    def preflight(self, report: Preflight) -> None:
        self.reports.append(report)

    def event(self, event: AnyEvent) -> None: ...

    def progress(self, progress: Progress) -> None:
        self.standings.append(progress)


class StuckBackend(ScriptedBackend):
    """Never comes up."""

    closed = False

    async def start(self, listener: StartListener) -> None:
        listener("load")
        await asyncio.Event().wait()

    async def close(self) -> None:
        self.closed = True


class DeadBackend(ScriptedBackend):
    async def start(self, listener: StartListener) -> None:
        raise BackendStartError("no such engine")


def _work(backend: ScriptedBackend | None = None, count: int = 3, **changes: Any) -> Execution:
    backend = backend or ScriptedBackend(ScriptOptions(slots=1))
    samples = tuple(Sample(id=str(n), question="q", response=f"r {n}") for n in range(count))
    work = Execution(
        method=ReadOnce(),
        engine=Engine(backend, "scripted", "1", "scripted", 4096),
        judges=LabelJudges,
        render=lambda _template, values: FakeRendered(str(values["text"])),
        search=None,
        plan=make_plan([samples] if samples else []),
        meter=Meter(count),
    )
    return replace(work, **changes)


class Seized(Ears):
    """A control server that hands its switch to the test."""

    def __init__(self) -> None:
        super().__init__()
        self.switch: StopSwitch | None = None
        self.closed = False
        self.broken = False
        self.deltas: list[TokenDelta] = []
        self.seen: list[Slots] = []

    @property
    def watched(self) -> bool:
        return True

    def delta(self, delta: TokenDelta) -> None:
        self.deltas.append(delta)

    def slots(self, slots: Slots) -> None:
        self.seen.append(slots)

    def __call__(self, switch: StopSwitch) -> Seized:
        self.switch = switch
        return self

    async def start(self) -> None:
        if self.broken:
            raise StorageError("no room for a socket")

    async def close(self) -> None:
        self.closed = True


async def test_events_of_a_whole_run_come_in_order() -> None:
    trace, ears = MemoryTrace(), Ears()
    assert await execute(_work(), trace, SafeListeners([ears])) == "completed"
    assert trace.kinds() == [
        "run_started",
        "engine_started",
        *["sample_started", "sample_finished"] * 3,
        "run_finished",
    ]
    assert trace.end().status == "completed"
    assert ears.reports[0].planned == 3


async def test_a_run_with_nothing_to_do_starts_no_engine() -> None:
    trace, ears = MemoryTrace(), Ears()
    work = _work(DeadBackend(), count=0)
    assert await execute(work, trace, SafeListeners([ears])) == "completed"
    assert trace.kinds() == ["run_started", "run_finished"]
    assert ears.reports[0].planned == 0


async def test_a_limit_that_left_samples_out_is_told_in_the_status() -> None:
    work = _work()
    samples = work.plan.groups
    work = replace(work, plan=make_plan(samples, limit=2))
    assert await execute(work, MemoryTrace(), SafeListeners()) == "limit"


async def test_an_engine_that_does_not_start_fails_the_run_with_its_own_words() -> None:
    trace = MemoryTrace()
    with pytest.raises(BackendStartError, match="no such engine"):
        await execute(_work(DeadBackend()), trace, SafeListeners())
    assert trace.end().status == "failed"
    assert "no such engine" in trace.end().message


async def test_a_stop_while_the_engine_starts_is_heard_at_once() -> None:
    backend, control, ears = StuckBackend(), Seized(), Ears()

    def drain() -> None:
        assert control.switch is not None
        control.switch.drain()

    ears.on["load"] = drain
    trace = MemoryTrace()
    work = _work(backend, control=control)
    assert await execute(work, trace, SafeListeners([ears])) == "drained"
    assert backend.closed
    assert control.closed
    assert trace.kinds() == ["run_started", "run_finished"]


async def test_a_crash_in_the_middle_is_recorded_and_the_sample_goes_on() -> None:
    faults = (Fault(kind="crash", match="r 1"),)
    trace = MemoryTrace()
    backend = ScriptedBackend(ScriptOptions(slots=1, faults=faults))
    assert await execute(_work(backend), trace, SafeListeners()) == "completed"
    starts = [event for event in trace.events if isinstance(event, EngineStarted)]
    assert [start.restart for start in starts] == [0, 1]
    assert "crash" in starts[1].reason


async def test_a_smaller_window_than_wanted_is_told_in_the_trace() -> None:
    backend = ScriptedBackend(ScriptOptions(slots=1, window=2048))
    trace = MemoryTrace()
    await execute(_work(backend), trace, SafeListeners())
    warnings = [event.message for event in trace.events if isinstance(event, WarningRaised)]
    assert warnings == ["The engine granted a window of 2048 tokens, not 4096."]


@pytest.mark.parametrize("full_at", ["sample_finished", "run_finished", "engine_started"])
async def test_a_full_disk_ends_the_run_with_a_storage_error(full_at: str) -> None:
    trace, control = MemoryTrace(), Seized()
    trace.full_at = full_at
    with pytest.raises(StorageError):
        await execute(_work(control=control), trace, SafeListeners())
    assert control.closed


async def test_a_listener_that_raises_is_told_nothing_more_and_the_run_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    ears, sound = Ears(), Ears()

    def fail() -> None:
        raise ValueError("broken screen")

    ears.on["spawn"] = fail
    trace = MemoryTrace()
    assert await execute(_work(), trace, SafeListeners([ears, sound])) == "completed"
    assert ears.phases == ["spawn"]
    assert sound.phases[-1] == "preflight"
    assert "broken screen" in caplog.text


async def test_cancel_closes_the_engines_stream_before_the_run_ends() -> None:
    released: list[str] = []

    class Slow(ScriptedBackend):
        async def label_probabilities(
            self, prompt: Prompt, labels: Any, *, affinity: str = ""
        ) -> Any:
            assert control.switch is not None
            control.switch.cancel()
            try:
                await asyncio.Event().wait()
            finally:
                released.append(affinity)

    control, trace = Seized(), MemoryTrace()
    work = _work(Slow(ScriptOptions(slots=1)), control=control)
    assert await execute(work, trace, SafeListeners()) == "cancelled"
    assert released == ["0/verdict"]
    assert trace.kinds()[-2:] == ["sample_finished", "run_finished"]


async def test_a_run_that_cannot_be_reached_goes_on_and_says_so() -> None:
    control, ears = Seized(), Ears()
    control.broken = True
    work = _work(control=control)
    assert await execute(work, MemoryTrace(), SafeListeners([ears])) == "completed"
    assert "control" in ears.phases


async def test_those_who_watch_from_outside_are_told_what_listeners_are() -> None:
    control = Seized()
    await execute(_work(control=control), MemoryTrace(), SafeListeners())
    assert control.phases[:1] == ["spawn"]
    assert control.reports[0].planned == 3
    assert control.closed
