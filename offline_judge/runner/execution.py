"""One process of a run, from taking it up to letting go of it in good order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

from offline_judge.domain.calibration import Calibration
from offline_judge.domain.events import RunFinished, RunStarted, WarningRaised
from offline_judge.domain.message import Message
from offline_judge.domain.progress import Preflight
from offline_judge.errors import OfflineJudgeError, StorageError
from offline_judge.protocols import Backend, Method, RunListener, SearchProvider, TraceSink
from offline_judge.runner.board import Audience, Board
from offline_judge.runner.candidate.responses import Written, is_missing, ready, refused
from offline_judge.runner.candidate.writing import Candidate, Desk, write_missing
from offline_judge.runner.engine import Engine, EngineLog
from offline_judge.runner.listeners import SafeListeners
from offline_judge.runner.loop import JudgeBinder, LoopParts, Runner
from offline_judge.runner.plan import Plan
from offline_judge.runner.preflight import Render, Surveyor, measure_rates
from offline_judge.runner.progress import Meter
from offline_judge.runner.stopping import Stop, StoppedError, StopSwitch, stop_signals
from offline_judge.runner.watch import WatchedBackend

Status = Literal["completed", "limit", "drained", "cancelled", "failed"]

TICK_S = 1.0


class Control(RunListener, Audience, Protocol):
    """Serves watchers and other processes while the run lasts; is told what listeners are."""

    async def start(self) -> None:
        """Begin to serve.

        Raises:
            StorageError: it cannot be reached; the run goes on without it.
        """

    async def close(self) -> None:
        """Let go of everything."""


_NO_PROBABILITIES = (
    "The engine `{}` gives no label probabilities: verdicts are its answers, without a probability."
)


@dataclass(frozen=True)
class Execution:
    """All that one process of a run works with.

    Attributes:
        method: Judges each sample.
        engine: Runs the judge; not started yet.
        judges: Makes the binder of judges from the backend it shall use.
        render: Renders the method's templates by bare name, for counting.
        search: What the method may search.
        plan: What to judge.
        meter: Counts the events; fed by whoever writes them.
        lanes: Samples judged at the same time.
        minutes: No sample is taken after this time; None without a limit.
        resumed: An earlier process has worked on this run.
        warnings: What a reader of the results must know from the start.
        estimate: Time the engine first, to tell how long it will take.
        calibration: Reads every judgment a second way.
        control: Makes the control server from the switch; None serves nobody.
        candidate: Writes the responses that are missing; None where none is.
        written: What it wrote in earlier processes.
        switch: Stops and pauses the work.
        signals: Let signals throw the switch; whoever does this among other work hears them itself.
    """

    method: Method
    engine: Engine
    judges: Callable[[Backend], JudgeBinder]
    render: Render
    search: SearchProvider | None
    plan: Plan
    meter: Meter
    lanes: int = 1
    minutes: float | None = None
    resumed: bool = False
    warnings: tuple[str, ...] = ()
    estimate: bool = True
    calibration: Calibration | None = None
    control: Callable[[StopSwitch], Control] | None = None
    candidate: Candidate | None = None
    written: Written = field(default_factory=dict)
    switch: StopSwitch = field(default_factory=StopSwitch)
    signals: bool = True


async def execute(work: Execution, trace: TraceSink, listeners: SafeListeners) -> Status:
    """Judge what the plan says and record it; `RunFinished` is the last event.

    Raises:
        OfflineJudgeError: the run could not go on; what is recorded so far is kept.
    """
    session = _Session(work, trace, listeners)
    async with AsyncExitStack() as stack:
        if work.signals:
            stack.enter_context(stop_signals(work.switch, listeners))
        if work.control is not None:
            await _serve(work.control(work.switch), session.board, stack, listeners)
        try:
            status = await session.run()
        except OfflineJudgeError as error:
            # On a full disk this fails too; the run then reads as interrupted, which is true.
            with suppress(StorageError):
                trace.emit(RunFinished(status="failed", message=str(error)))
            raise
        trace.emit(RunFinished(status=status))
    return status


class _Session:
    """The steps of `execute`."""

    def __init__(self, work: Execution, trace: TraceSink, listeners: SafeListeners) -> None:
        self._work = work
        self._trace = trace
        self._listeners = listeners
        self._switch = work.switch
        self._log = EngineLog(work.engine, trace, listeners)
        backend = work.engine.backend
        self.board = Board(work.meter.doing)
        self._backend = WatchedBackend(backend, self.board, work.switch, self._log.answered)
        self._plan = work.plan
        self._written: Written = work.written
        self._spent_s = 0.0

    async def run(self) -> Status:
        work, plan = self._work, self._work.plan
        started = RunStarted(planned=plan.planned, reused=plan.reused, resumed=work.resumed)
        self._trace.emit(started)
        for message in work.warnings:
            self._trace.emit(WarningRaised(message=message))
        if not plan.groups:
            self._listeners.preflight(self._report(()))
            return "limit" if plan.limited else "completed"
        unwritten = await self._respond() if work.candidate is not None else 0
        plan = self._plan
        if self._switch.state is not Stop.GO or not plan.groups:
            return self._status(left=len(work.plan.samples))
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self._backend.close)
            stack.push_async_callback(_ended, asyncio.create_task(self._tick()))
            try:
                await self._switch.guard(self._prepare(), until=Stop.DRAIN)
            except StoppedError:
                return self._status(left=len(work.plan.samples))
            left = unwritten + await self._loop().run(plan.groups)
        if alarm := work.meter.alarm():
            self._trace.emit(WarningRaised(message=alarm))
        return self._status(left)

    async def _respond(self) -> int:
        """Have the missing responses written; returns how many are missing still.

        Only one engine runs at a time, since a small machine holds no two models. Where time is
        limited, half of it goes into writing at most, so that something comes to be judged.
        """
        work = self._work
        assert work.candidate is not None
        missing = [sample for sample in work.plan.samples if is_missing(sample, work.written)]
        if missing:
            desk = Desk(
                trace=self._trace,
                listeners=self._listeners,
                switch=self._switch,
                board=self.board,
                lanes=work.lanes,
                time_limit_s=None if work.minutes is None else 30 * work.minutes,
            )
            began = self._switch.working_clock()
            new = await write_missing(work.candidate, missing, desk)
            self._spent_s = self._switch.working_clock() - began
            self._written = {**work.written, **new}
        groups, left = ready(work.plan.groups, self._written)
        self._plan = replace(work.plan, groups=groups)
        return left

    async def _prepare(self) -> None:
        if self._work.method.stages:
            await self._start()
        await self._preflight()

    async def _start(self) -> None:
        await self._backend.start(self._log)
        self._log.answered()
        engine = self._work.engine
        for note in self._backend.facts.notes:
            self._trace.emit(WarningRaised(message=note))
        engine.check(self._backend.capabilities)
        if not self._backend.capabilities.label_probabilities:
            self._trace.emit(WarningRaised(message=_NO_PROBABILITIES.format(engine.name)))
        granted, wanted = self._backend.capabilities.window, self._work.engine.window
        if granted < wanted:
            self._trace.emit(
                WarningRaised(
                    message=f"The engine granted a window of {granted} tokens, not {wanted}."
                )
            )

    async def _preflight(self) -> None:
        work = self._work
        self._listeners.phase("preflight", f"{len(self._plan.samples)} samples")
        thought = work.engine.demands.thinking_tokens
        surveyor = Surveyor(work.method, work.render, self._backend, thought=thought)
        survey = await surveyor.survey(self._plan.samples)
        rates = await measure_rates(self._backend, self._heads() if work.estimate else {})
        notes: tuple[str, ...] = ()
        if survey.guessed:
            notes = (f"{survey.guessed} samples were measured by their length alone.",)
        seconds = self._estimate(survey.seconds(rates, work.lanes))
        self._listeners.preflight(self._report(survey.too_long, seconds, notes))

    def _estimate(self, seconds: float | None) -> float | None:
        limit = self._time_limit()
        return seconds if seconds is None or limit is None else min(seconds, limit)

    def _time_limit(self) -> float | None:
        """Seconds left for judging; None without a limit."""
        minutes = self._work.minutes
        return None if minutes is None else max(0.0, 60 * minutes - self._spent_s)

    def _heads(self) -> dict[str, tuple[Message, ...]]:
        """The fixed head of the first stage, by the first prompt of the first sample."""
        sample = self._plan.samples[0]
        for template, values, _ in self._work.method.largest_prompts(sample):
            messages = self._work.render(template, values).messages
            head = tuple(message for message in messages if message.role == "system")
            return {template.partition(".")[0]: head}
        return {}

    def _report(
        self,
        too_long: tuple[str, ...],
        seconds: float | None = None,
        notes: tuple[str, ...] = (),
    ) -> Preflight:
        plan = self._plan
        return Preflight(
            planned=len(plan.samples),
            reused=plan.reused,
            too_long=too_long,
            window=self._backend.capabilities.window if plan.groups else self._work.engine.window,
            seconds=seconds,
            notes=plan.notes + notes,
        )

    def _loop(self) -> Runner:
        work = self._work
        parts = LoopParts(
            method=work.method,
            judges=work.judges(self._backend),
            search=work.search,
            trace=self._trace,
            lanes=work.lanes,
            time_limit_s=self._time_limit(),
            refused=refused(self._written),
            assigned=self.board.assign,
            calibration=work.calibration,
        )
        return Runner(parts, self._switch)

    def _status(self, left: int) -> Status:
        if left and self._switch.state is Stop.CANCEL:
            return "cancelled"
        if left and self._switch.state is Stop.DRAIN:
            return "drained"
        return "limit" if left or self._work.plan.limited else "completed"

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK_S)
            self._listeners.progress(self._work.meter.snapshot())


async def _serve(
    control: Control, board: Board, stack: AsyncExitStack, listeners: SafeListeners
) -> None:
    try:
        await control.start()
    except StorageError as error:
        listeners.phase("control", f"other processes cannot reach this run: {error}")
        return
    stack.push_async_callback(control.close)
    listeners.add(control)
    board.show(control)


async def _ended(task: asyncio.Task[Any]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
