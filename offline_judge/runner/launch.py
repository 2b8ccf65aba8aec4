"""Taking up a run directory, judging what its plan says, and leaving results behind."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from offline_judge.domain.calibration import Calibration
from offline_judge.domain.events import AnyEvent, SampleFinished
from offline_judge.errors import OfflineJudgeError, UsageError
from offline_judge.protocols import Backend, Method, RunListener, SearchProvider, Values
from offline_judge.runner.candidate.responses import Written
from offline_judge.runner.candidate.writing import Candidate
from offline_judge.runner.engine import Engine
from offline_judge.runner.execution import Execution, Status, execute
from offline_judge.runner.listeners import SafeListeners
from offline_judge.runner.loop import JudgeBinder
from offline_judge.runner.plan import Plan
from offline_judge.runner.preflight import Rendering
from offline_judge.runner.progress import Meter
from offline_judge.runner.stopping import StopSwitch
from offline_judge.runs.control import ControlServer, Handler
from offline_judge.runs.reader import read_events
from offline_judge.runs.reducer import fold
from offline_judge.runs.store import RunDirectory
from offline_judge.runs.writer import TraceWriter


class Parts(Protocol):
    """What a run is made of, as `wiring` puts it together."""

    @property
    def method(self) -> Method:
        """Judges each sample."""

    @property
    def engine(self) -> Engine:
        """Not started yet."""

    @property
    def search(self) -> SearchProvider | None:
        """What the method may search."""

    @property
    def judges(self) -> Callable[[Backend], JudgeBinder]:
        """Makes the binder of judges from the backend it shall use."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader of the results must know of these parts."""

    def render(self, template: str, values: Values) -> Rendering:
        """Render one of the method's templates by its bare name."""


@dataclass(frozen=True)
class Job:
    """What one process shall do with a run.

    Attributes:
        plan: What to judge.
        lanes: Samples judged at the same time.
        minutes: No sample is taken after this time; None without a limit.
        resumed: An earlier process has worked on this run.
        warnings: What a reader of the results must know from the start.
        runtime_path: Where the control socket is.
        estimate: Time the engine first, to tell how long it will take.
        calibration: Reads every judgment a second way.
        candidate: Writes the responses that are missing; None where none is.
        written: What it wrote in earlier processes.
        switch: Of whoever does this among other work and hears signals itself; None makes one
            that signals throw.
    """

    plan: Plan
    lanes: int
    minutes: float | None
    resumed: bool
    warnings: tuple[str, ...]
    runtime_path: Path
    estimate: bool = True
    calibration: Calibration | None = None
    candidate: Candidate | None = None
    written: Written = field(default_factory=dict)
    switch: StopSwitch | None = None


class Desk:
    """A run directory that this process writes to, and those who watch."""

    def __init__(self, directory: RunDirectory, listener: RunListener | None) -> None:
        self.directory = directory
        self.listeners = SafeListeners([listener])
        self.meter: Meter | None = None

    def event(self, event: AnyEvent) -> None:
        """Count a recorded event and tell it to those who watch."""
        if self.meter is not None:
            self.meter.event(event)
        self.listeners.event(event)
        if self.meter is not None and isinstance(event, SampleFinished):
            self.listeners.progress(self.meter.snapshot())

    def leave_results(self) -> None:
        """Derive the summary from the trace and write it down.

        Raises:
            StorageError: the trace cannot be read or the summary not be written.
        """
        directory = self.directory
        # Whatever still runs now has let go of its samples, so no end means an interrupted run.
        events = read_events(directory.path, texts=False)
        state = fold(events, directory.run_id, live=False)
        directory.write_results(state.summary())


@contextmanager
def take_up(
    directory: RunDirectory, listener: RunListener | None
) -> Iterator[tuple[Desk, TraceWriter]]:
    """Hold a run's lock and its trace open for the block.

    Raises:
        RunLockedError: another process works on the run.
    """
    desk = Desk(directory, listener)
    with directory.writer(listener=desk) as writer:
        yield desk, writer


def carry_out(desk: Desk, writer: TraceWriter, parts: Parts, job: Job) -> None:
    """Judge what the plan says; results are left behind however it ends.

    Raises:
        OfflineJudgeError: the run could not go on; what is recorded so far is kept.
    """
    in_order = False
    try:
        asyncio.run(work_on(desk, writer, parts, job))
        in_order = True
    finally:
        # A fault that ends the run is worth more to the user than one met while tidying up.
        with nullcontext() if in_order else suppress(OfflineJudgeError):
            desk.leave_results()


async def work_on(desk: Desk, writer: TraceWriter, parts: Parts, job: Job) -> Status:
    """Judge what the plan says on the loop that runs; leaves no results behind.

    Raises:
        OfflineJudgeError: the run could not go on; what is recorded so far is kept.
    """
    plan, switch = job.plan, job.switch or StopSwitch()
    meter = Meter(
        plan.planned,
        reused=plan.reused,
        reused_unscored=plan.reused_unscored,
        time_limit_s=None if job.minutes is None else 60 * job.minutes,
        clock=switch.working_clock,
        paused=lambda: switch.paused,
    )
    desk.meter = meter
    work = Execution(
        method=parts.method,
        engine=parts.engine,
        judges=parts.judges,
        render=parts.render,
        search=parts.search,
        plan=plan,
        meter=meter,
        lanes=job.lanes,
        minutes=job.minutes,
        resumed=job.resumed,
        warnings=(*job.warnings, *parts.warnings),
        estimate=job.estimate,
        candidate=job.candidate,
        written=job.written,
        switch=switch,
        signals=job.switch is None,
        calibration=job.calibration,
        control=lambda switch: _control(desk, job, switch),
    )
    return await execute(work, writer, desk.listeners)


def _control(desk: Desk, job: Job, switch: StopSwitch) -> ControlServer:
    def tell(phase: str, detail: str) -> None:
        desk.listeners.phase(phase, f"asked by another process; {detail}")

    def drain() -> None:
        tell("drain", "samples in flight are finished")
        switch.drain()

    def cancel() -> None:
        tell("cancel", "samples in flight are given up")
        switch.cancel()

    def pause() -> None:
        if not switch.pause():
            raise UsageError("The run is stopping already, so it cannot be paused.")
        tell("pause", "requests in flight are finished, and nothing new is begun")
        show()

    def go_on() -> None:
        switch.go_on()
        tell("resume", "the run goes on")
        show()

    def show() -> None:
        if desk.meter is not None:
            desk.listeners.progress(desk.meter.snapshot())

    def status() -> dict[str, object]:
        stop = switch.state.name.lower()
        return {"pid": os.getpid(), "stop": stop, "paused": switch.paused}

    handlers: dict[str, Handler] = {"drain": drain, "cancel": cancel, "status": status}
    handlers |= {"pause": pause, "resume": go_on}
    return ControlServer(job.runtime_path, desk.directory.run_id, handlers)
