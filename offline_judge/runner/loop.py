"""The run loop: lanes that take whole groups of samples, and the sample boundary."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol

from offline_judge.domain.calibration import Calibration
from offline_judge.domain.events import AnyEvent, SampleFinished, SampleStarted
from offline_judge.domain.judgment import Outcome
from offline_judge.domain.sample import Sample
from offline_judge.errors import BackendStartError, OfflineJudgeError, StorageError, UnscoredError
from offline_judge.protocols import Judge, Method, MethodContext, SearchProvider, TraceSink
from offline_judge.runner.stopping import Stop, StoppedError, StopSwitch

Group = tuple[Sample, ...]

_FATAL = (StorageError, BackendStartError)
"""Errors after which no further sample can be judged."""


class JudgeBinder(Protocol):
    """Makes the judge of one sample; `judge.session.JudgeFactory` is one."""

    def bind(self, sample_id: str, lane: int, trace: TraceSink) -> Judge:
        """A judge that records into `trace` and keeps to the slots of `lane`."""


@dataclass(frozen=True)
class LoopParts:
    """What the loop works with.

    Attributes:
        method: Judges each sample.
        judges: Makes each sample's judge.
        search: What the method may search; None where it does not.
        trace: Takes every event.
        lanes: Samples judged at the same time.
        time_limit_s: Seconds after which no new sample is taken; None without a limit.
        calibration: Reads every judgment a second way; see `Runner._outcome`.
        refused: Sample id to reason and detail, for samples that have nothing to judge.
        assigned: Told each (lane, sample id) as it is taken.
    """

    method: Method
    judges: JudgeBinder
    search: SearchProvider | None
    trace: TraceSink
    lanes: int = 1
    time_limit_s: float | None = None
    calibration: Calibration | None = None
    refused: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    assigned: Callable[[int, str], None] = lambda _lane, _sample_id: None


class Runner:
    """Drives samples through lanes until they are done, a limit is reached or it is stopped.

    A lane takes a whole group (the samples of one question) and judges them one after another,
    so that they share what the lane's slots have read. Pauses count neither for the time limit
    nor for the seconds of a sample.
    """

    def __init__(self, parts: LoopParts, switch: StopSwitch) -> None:
        self._parts = parts
        self._switch = switch
        self._clock = switch.working_clock
        self._waiting: deque[Group] = deque()
        self._left_out = 0
        self._deadline: float | None = None
        self._failure: OfflineJudgeError | None = None

    async def run(self, groups: Sequence[Group]) -> int:
        """Judge all samples of `groups`, in order.

        Returns:
            How many samples were not taken or were given up, through a limit or the switch.

        Raises:
            StorageError: nothing more can be recorded.
            BackendStartError: the engine cannot be brought up again.
        """
        self._waiting = deque(groups)
        if self._parts.time_limit_s is not None:
            self._deadline = self._clock() + self._parts.time_limit_s
        async with asyncio.TaskGroup() as lanes:
            for lane in range(min(self._parts.lanes, len(groups))):
                lanes.create_task(self._work(lane))
        if self._failure is not None:
            raise self._failure
        return self._left_out + sum(len(group) for group in self._waiting)

    async def _work(self, lane: int) -> None:
        while self._waiting and self._may_start():
            group = self._waiting.popleft()
            for position, sample in enumerate(group):
                await self._switch.going()
                if not self._may_start():
                    self._left_out += len(group) - position
                    break
                await self._judge(lane, sample)

    def _may_start(self) -> bool:
        in_time = self._deadline is None or self._clock() < self._deadline
        return in_time and self._switch.state is Stop.GO

    async def _judge(self, lane: int, sample: Sample) -> None:
        """Take one sample to an outcome; an error that ends the run is kept for `run`."""
        began = self._clock()
        try:
            self._parts.assigned(lane, sample.id)
            self._parts.trace.emit(SampleStarted(sample_id=sample.id, sample=sample))
            finished = await self._outcome(lane, sample)
            seconds = self._clock() - began
            self._parts.trace.emit(finished.model_copy(update={"seconds": round(seconds, 3)}))
        except _FATAL as error:
            self._fail(error)
        except asyncio.CancelledError:
            # The loop itself is being torn down; the sample must not look as if it still ran.
            with suppress(StorageError):
                self._parts.trace.emit(_given_up(sample))
            raise

    async def _outcome(self, lane: int, sample: Sample) -> SampleFinished:
        trace = SampleTrace(self._parts.trace, sample.id)
        try:
            if sample.id in self._parts.refused:
                raise UnscoredError(*self._parts.refused[sample.id])
            judge = self._parts.judges.bind(sample.id, lane, trace)
            context = MethodContext(judge=judge, search=self._parts.search, trace=trace)
            work = self._parts.method.judge(sample, context)
            judgment = await self._switch.guard(work, until=Stop.CANCEL)
        except StoppedError:
            self._left_out += 1
            return _given_up(sample)
        except UnscoredError as error:
            return SampleFinished(
                sample_id=sample.id,
                outcome=Outcome.UNSCORED,
                reason=error.reason,
                detail=error.detail,
            )
        except StorageError:
            raise
        except BackendStartError as error:
            self._fail(error)
            return _failed(sample, error)
        except Exception as error:  # noqa: BLE001 - the sample boundary: one bad sample never ends a run
            return _failed(sample, error)
        # The calibrated reading is put beside the judge's own here, where a judgment becomes an
        # event, and not in the fold: whoever reads the trace then has both readings, and the fold
        # still needs nothing but events.
        if self._parts.calibration is not None:
            judgment = self._parts.calibration.read(judgment)
        return SampleFinished(sample_id=sample.id, outcome=Outcome.SCORED, judgment=judgment)

    def _fail(self, error: OfflineJudgeError) -> None:
        if self._failure is None:
            self._failure = error
        self._switch.cancel()


class SampleTrace:
    """A trace that puts its sample's id on every event that has none."""

    def __init__(self, trace: TraceSink, sample_id: str) -> None:
        self._trace = trace
        self._sample_id = sample_id

    def emit(self, event: AnyEvent) -> None:
        """Record one event of the sample."""
        if not event.sample_id:
            event = event.model_copy(update={"sample_id": self._sample_id})
        self._trace.emit(event)


def _given_up(sample: Sample) -> SampleFinished:
    return SampleFinished(
        sample_id=sample.id,
        outcome=Outcome.CANCELLED,
        reason="cancelled",
        detail="given up before it was judged",
    )


def _failed(sample: Sample, error: Exception) -> SampleFinished:
    return SampleFinished(
        sample_id=sample.id,
        outcome=Outcome.ERROR,
        reason=type(error).__name__,
        detail=str(error) or repr(error),
    )
