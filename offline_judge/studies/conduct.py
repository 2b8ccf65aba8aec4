"""Judging one data file under several conditions, question by question through all of them.

Each condition is a run of its own in the run store, with its own trace. A question goes through
all conditions before the next one begins, so that whenever the study stops, all conditions have
the same questions judged. A run that judges the same samples in the same way already is gone on
with, whether a study began it or not.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from tempfile import TemporaryDirectory

from offline_judge import wiring
from offline_judge.datasets.order import group_samples
from offline_judge.domain.base import content_hash
from offline_judge.domain.run import DataSource
from offline_judge.domain.sample import Sample
from offline_judge.errors import OfflineJudgeError, UsageError
from offline_judge.jobs.beginning import keep_sources, manifest_of
from offline_judge.jobs.orders import Limits, Order
from offline_judge.jobs.threads import outside_event_loop
from offline_judge.protocols import Method, RunListener
from offline_judge.runner.launch import Desk, Job, take_up, work_on
from offline_judge.runner.plan import Done, Group, Plan, make_plan
from offline_judge.runner.stopping import Stop, StopSwitch, stop_signals
from offline_judge.runs.reader import read_events
from offline_judge.runs.reducer import RunState
from offline_judge.runs.writer import TraceWriter
from offline_judge.settings import Settings
from offline_judge.studies.conditions import Condition
from offline_judge.studies.engine_share import EngineShare
from offline_judge.studies.known_runs import find_run
from offline_judge.studies.listening import ConditionEars, StudyEars
from offline_judge.wiring.engines import no_engine


@dataclass(frozen=True)
class Work:
    """What a study judges.

    Attributes:
        samples: Those that count, labelled ones.
        source: Their data file.
        conditions: In the order a question goes through them.
        limits: Samples in all; minutes after which no further question is begun.
    """

    samples: Sequence[Sample]
    source: DataSource
    conditions: tuple[Condition, ...]
    limits: Limits


@dataclass(frozen=True)
class Conducted:
    """Condition to its run, and how the study ended: `completed`, `limit` or `stopped`."""

    runs: dict[str, str]
    status: str


@dataclass(frozen=True)
class _Open:
    """A condition whose run this process writes."""

    condition: Condition
    parts: wiring.Components
    desk: Desk
    writer: TraceWriter
    state: RunState


@outside_event_loop
def conduct(
    work: Work,
    settings: Settings,
    listener: RunListener | None,
    clock: Callable[[], float] = time.monotonic,
) -> Conducted:
    """Judge until all is judged, a limit is reached or the study is stopped.

    Raises:
        OfflineJudgeError: a part cannot be had, or a run cannot go on; what was judged is kept.
    """
    settings = wiring.settled(settings)
    groups = group_samples(work.samples, seed=settings.seed)
    within = make_plan(groups, limit=work.limits.limit).groups
    ears = StudyEars(listener, planned=len(work.conditions) * sum(map(len, within)))
    with ExitStack() as stack:
        shared = _shared(work, settings, ears, stack)
        share = EngineShare(shared.engine.backend)
        bench = _Bench(work, _with_cache(settings, stack), settings, shared, share, ears)
        opened = [stack.enter_context(_opened(one, bench)) for one in work.conditions]
        names = {sample.id for group in within for sample in group}
        ears.had(sum(len(names & one.state.settled) for one in opened))
        status = asyncio.run(_Study(work, settings, opened, clock).run(within, share, ears))
    return Conducted({one.condition.name: one.desk.directory.run_id for one in opened}, status)


@dataclass(frozen=True)
class _Bench:
    """What all conditions are made from; `cached` are the settings with a cache they share."""

    work: Work
    cached: Settings
    settings: Settings
    shared: wiring.Shared
    share: EngineShare
    ears: StudyEars


class _Study:
    """Questions on their way through the conditions."""

    def __init__(
        self,
        work: Work,
        settings: Settings,
        opened: Sequence[_Open],
        clock: Callable[[], float],
    ) -> None:
        self._work = work
        self._settings = settings
        self._opened = opened
        # One for all steps: a signal between two of them must not be lost.
        self._switch = StopSwitch()
        self._now = clock

    async def run(self, groups: Sequence[Group], share: EngineShare, listener: RunListener) -> str:
        """Take as many questions at a time as there are lanes through all conditions."""
        minutes, lanes = self._work.limits.minutes, self._settings.lanes
        deadline = None if minutes is None else self._clock() + 60 * minutes
        planned = sum(map(len, groups))
        everything = planned == len(self._work.samples)
        async with AsyncExitStack() as stack:
            stack.push_async_callback(share.close)
            stack.enter_context(stop_signals(self._switch, listener))
            for start in range(0, len(groups), lanes):
                if deadline is not None and self._clock() >= deadline:
                    return "limit"
                last = everything and start + lanes >= len(groups)
                for one in self._opened:
                    block = groups[start : start + lanes]
                    if not await self._take(one, block, planned, last=last):
                        return "stopped"
        return "completed" if everything else "limit"

    def _clock(self) -> float:
        """Seconds that stand still during a pause."""
        return self._now() - self._switch.paused_s

    async def _take(self, one: _Open, block: Sequence[Group], planned: int, *, last: bool) -> bool:
        """Judge what a condition has not judged of these questions; false once it shall stop."""
        state = one.state
        left = make_plan(block, done=Done(state.samples, state.finished))
        if self._switch.state is not Stop.GO:
            return False
        if not left.groups:
            return True
        reused = len(state.settled)
        total = max(planned, reused + len(left.samples))
        job = Job(
            plan=Plan(left.groups, planned=total, reused=reused, limited=not last),
            lanes=self._settings.lanes,
            minutes=None,
            resumed=bool(state.samples),
            warnings=(),
            runtime_path=self._settings.runtime_path,
            estimate=False,
            switch=self._switch,
        )
        await work_on(one.desk, one.writer, one.parts, job)
        return self._switch.state is Stop.GO


@contextmanager
def _opened(condition: Condition, bench: _Bench) -> Iterator[_Open]:
    """Hold a condition's run: the one that judges the same in the same way, else a new one."""
    work, settings, shared = bench.work, bench.settings, bench.shared
    engine = replace(shared.engine, backend=bench.share.view(condition.method))
    with ExitStack() as stack:
        parts = stack.enter_context(
            wiring.open_components(
                bench.cached,
                condition.method,
                condition.options,
                bench.ears,
                shared=replace(shared, engine=engine),
            )
        )
        store = wiring.run_store(settings)
        order = Order(condition.method, condition.options, work.limits)
        wanted = manifest_of(store.new_id(), order, work.source, settings, parts)
        directory = find_run(wanted, settings) or store.create(wanted)
        state = RunState(directory.run_id)
        listener = ConditionEars(condition.name, state, bench.ears)
        desk, writer = stack.enter_context(take_up(directory, listener))
        for event in read_events(directory.path, texts=False):
            state.apply(event)
        if not state.samples:
            keep_sources(writer, parts, None)
        try:
            yield _Open(condition, parts, desk, writer, state)
        except BaseException:
            # A fault that ends the study is worth more to the user than one met in tidying up.
            with suppress(OfflineJudgeError):
                desk.leave_results()
            raise
        desk.leave_results()


def _shared(
    work: Work, settings: Settings, listener: RunListener, stack: ExitStack
) -> wiring.Shared:
    """One engine with a slot for every stage of every method in each lane, and one search."""
    methods = [wiring.build_method(one.method, one.options) for one in work.conditions]
    _check_that_they_differ(work.conditions, methods)
    stages = {(method.name, stage) for method in methods for stage in method.stages}
    # String comparison alone needs no weights.
    engine, identity = (
        wiring.make_engine(settings, settings.lanes * len(stages)) if stages else no_engine()
    )
    search = None
    if any(method.searches for method in methods):
        search = wiring.open_search(settings, listener)
        stack.callback(search.close)
    return wiring.Shared(engine, identity, search)


def _check_that_they_differ(conditions: Sequence[Condition], methods: Sequence[Method]) -> None:
    """Two conditions that judge alike would be one run.

    Raises:
        UsageError: naming the two.
    """
    seen: dict[str, str] = {}
    for condition, method in zip(conditions, methods, strict=True):
        identity = content_hash([method.name, method.options])
        if identity in seen:
            raise UsageError(
                f"The conditions `{seen[identity]}` and `{condition.name}` judge in the same way.",
                remedy="Leave one of them out, or give it other options.",
            )
        seen[identity] = condition.name


def _with_cache(settings: Settings, stack: ExitStack) -> Settings:
    """Settings with a completion cache, since conditions share their rounds by it.

    Where the user keeps none, it lasts as long as the study.
    """
    if settings.cache:
        return settings
    folder = stack.enter_context(TemporaryDirectory())
    return replace(settings, cache=True, cache_dir=folder)
