"""The loop: order on lanes, the sample boundary, limits, drain and cancel."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, ClassVar, cast

import pytest

from offline_judge.domain.events import AnyEvent, SampleFinished, SampleStarted, SearchFinished
from offline_judge.domain.judgment import Judgment, Outcome
from offline_judge.domain.sample import Sample
from offline_judge.errors import BackendStartError, SearchError, StorageError, UnscoredError
from offline_judge.protocols import Judge, MethodContext, TraceSink, Values
from offline_judge.runner.loop import LoopParts, Runner
from offline_judge.runner.stopping import StopSwitch

YES = Judgment(verdict=True, probability=0.9)
Work = Callable[[Sample, MethodContext], Awaitable[Judgment]]


class FakeMethod:
    name: ClassVar[str] = "fake"
    searches: ClassVar[bool] = False
    stages = ("verdict",)

    def __init__(self, work: Work) -> None:
        self._work = work

    @property
    def options(self) -> dict[str, Any]:
        return {}

    def largest_prompts(self, sample: Sample) -> tuple[tuple[str, Values, int], ...]:
        return ()

    async def judge(self, sample: Sample, context: MethodContext) -> Judgment:
        return await self._work(sample, context)


class FakeJudges:
    def bind(self, sample_id: str, lane: int, trace: TraceSink) -> Judge:
        return cast(Judge, f"judge of lane {lane}")


class MemoryTrace:
    def __init__(self, full_after: int | None = None) -> None:
        self.events: list[AnyEvent] = []
        self._full_after = full_after

    def emit(self, event: AnyEvent) -> None:
        if self._full_after is not None and len(self.events) >= self._full_after:
            raise StorageError("no space left")
        self.events.append(event)

    def outcomes(self) -> dict[str, str]:
        return {e.sample_id: e.outcome for e in self.events if isinstance(e, SampleFinished)}

    def started(self) -> list[str]:
        return [e.sample_id for e in self.events if isinstance(e, SampleStarted)]


async def _yes(sample: Sample, context: MethodContext) -> Judgment:
    await asyncio.sleep(0)
    return YES


def _groups(*sizes: int) -> list[tuple[Sample, ...]]:
    return [
        tuple(Sample(id=f"{g}{s}", question=f"q{g}", response=f"r{s}") for s in range(size))
        for g, size in enumerate(sizes)
    ]


def _parts(trace: MemoryTrace, work: Work = _yes, **kwargs: Any) -> LoopParts:
    return LoopParts(FakeMethod(work), FakeJudges(), None, trace, **kwargs)


async def test_every_sample_gets_one_start_and_one_outcome() -> None:
    trace = MemoryTrace()
    left = await Runner(_parts(trace, lanes=2), StopSwitch()).run(_groups(2, 1, 3))
    assert left == 0
    assert sorted(trace.started()) == ["00", "01", "10", "20", "21", "22"]
    assert set(trace.outcomes().values()) == {Outcome.SCORED}
    assert len(trace.events) == 12


async def test_samples_of_one_question_follow_one_another_on_one_lane() -> None:
    seen: list[tuple[int, str]] = []
    trace = MemoryTrace()
    parts = _parts(trace, lanes=3, assigned=lambda lane, name: seen.append((lane, name)))
    await Runner(parts, StopSwitch()).run(_groups(3, 3, 3, 3))
    for question in "0123":
        lanes = {lane for lane, name in seen if name[0] == question}
        assert len(lanes) == 1
        mine = [name for lane, name in seen if lane in lanes]
        first = mine.index(f"{question}0")
        assert mine[first : first + 3] == [f"{question}{n}" for n in range(3)]


@pytest.mark.parametrize(
    ("error", "outcome", "reason"),
    [
        (UnscoredError("off-menu", "said maybe"), Outcome.UNSCORED, "off-menu"),
        (SearchError("index gone"), Outcome.ERROR, "SearchError"),
        (ZeroDivisionError("oh"), Outcome.ERROR, "ZeroDivisionError"),
    ],
)
async def test_a_bad_sample_is_an_outcome_and_the_next_one_is_judged(
    error: Exception, outcome: Outcome, reason: str
) -> None:
    async def work(sample: Sample, context: MethodContext) -> Judgment:
        if sample.id == "00":
            raise error
        return YES

    trace = MemoryTrace()
    await Runner(_parts(trace, work), StopSwitch()).run(_groups(2))
    finished = [e for e in trace.events if isinstance(e, SampleFinished)]
    assert [e.outcome for e in finished] == [outcome, Outcome.SCORED]
    assert finished[0].reason == reason
    assert str(error).rpartition(": ")[2] in finished[0].detail


async def test_a_method_that_cancels_itself_is_an_error_and_the_lane_lives_on() -> None:
    async def work(sample: Sample, context: MethodContext) -> Judgment:
        if sample.id == "00":
            raise asyncio.CancelledError
        return YES

    trace = MemoryTrace()
    assert await Runner(_parts(trace, work), StopSwitch()).run(_groups(2)) == 0
    assert trace.outcomes() == {"00": Outcome.ERROR, "01": Outcome.SCORED}


async def test_events_of_a_method_carry_its_sample() -> None:
    async def work(sample: Sample, context: MethodContext) -> Judgment:
        context.trace.emit(SearchFinished(query="q", provider="p"))
        return YES

    trace = MemoryTrace()
    await Runner(_parts(trace, work), StopSwitch()).run(_groups(1))
    assert [e.sample_id for e in trace.events if isinstance(e, SearchFinished)] == ["00"]


async def test_drain_finishes_what_is_in_flight_and_takes_nothing_new() -> None:
    switch, trace = StopSwitch(), MemoryTrace()

    async def work(sample: Sample, context: MethodContext) -> Judgment:
        switch.drain()
        await asyncio.sleep(0)
        return YES

    left = await Runner(_parts(trace, work), switch).run(_groups(3, 2))
    assert trace.outcomes() == {"00": Outcome.SCORED}
    assert left == 4


async def test_cancel_gives_up_each_sample_in_flight() -> None:
    switch, trace = StopSwitch(), MemoryTrace()
    begun: list[str] = []

    async def work(sample: Sample, context: MethodContext) -> Judgment:
        begun.append(sample.id)
        if len(begun) == 2:
            switch.cancel()
        await asyncio.Event().wait()
        return YES

    left = await Runner(_parts(trace, work, lanes=2), switch).run(_groups(2, 2))
    assert trace.outcomes() == {"00": Outcome.CANCELLED, "10": Outcome.CANCELLED}
    assert left == 4


async def test_after_the_deadline_the_sample_in_flight_finishes_and_none_is_taken() -> None:
    now = [0.0]

    async def work(sample: Sample, context: MethodContext) -> Judgment:
        now[0] += 40
        return YES

    trace = MemoryTrace()
    parts = _parts(trace, work, time_limit_s=60.0)
    switch = StopSwitch(lambda: now[0])
    assert await Runner(parts, switch).run(_groups(3, 3)) == 4
    assert trace.started() == ["00", "01"]
    assert trace.outcomes() == {"00": Outcome.SCORED, "01": Outcome.SCORED}


async def test_a_full_disk_ends_the_run_with_its_own_error() -> None:
    trace = MemoryTrace(full_after=3)
    with pytest.raises(StorageError, match="no space left"):
        await Runner(_parts(trace, lanes=2), StopSwitch()).run(_groups(3, 3))
    assert len(trace.events) == 3


async def test_an_engine_that_stays_down_ends_the_run_and_gives_up_the_other_lane() -> None:
    async def work(sample: Sample, context: MethodContext) -> Judgment:
        if sample.id == "00":
            await asyncio.sleep(0)
            raise BackendStartError("engine will not start")
        await asyncio.Event().wait()
        return YES

    trace = MemoryTrace()
    with pytest.raises(BackendStartError):
        await Runner(_parts(trace, work, lanes=2), StopSwitch()).run(_groups(2, 2))
    assert trace.outcomes() == {"00": Outcome.ERROR, "10": Outcome.CANCELLED}


async def test_tearing_the_loop_down_leaves_no_sample_open() -> None:
    begun = asyncio.Event()

    async def work(sample: Sample, context: MethodContext) -> Judgment:
        begun.set()
        await asyncio.Event().wait()
        return YES

    trace = MemoryTrace()
    task = asyncio.create_task(Runner(_parts(trace, work), StopSwitch()).run(_groups(2)))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert trace.outcomes() == {"00": Outcome.CANCELLED}
