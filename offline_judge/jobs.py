"""Beginning, resuming and stopping runs: data, parts and a run directory brought together."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import wraps
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ParamSpec, TypeVar

from offline_judge import wiring
from offline_judge.datasets.order import group_samples
from offline_judge.datasets.readers import Loaded, read_samples
from offline_judge.domain.run import DataSource, RunManifest, RunSummary
from offline_judge.domain.sample import Sample
from offline_judge.errors import (
    DataError,
    RunChangedError,
    RunNotFoundError,
    StorageError,
    UsageError,
)
from offline_judge.protocols import RunListener
from offline_judge.runner.launch import Job, carry_out, take_up
from offline_judge.runner.listeners import SafeListeners
from offline_judge.runner.plan import (
    Done,
    Group,
    Plan,
    check_data,
    check_same_judge,
    make_plan,
)
from offline_judge.runs.control_client import ControlClient
from offline_judge.runs.reader import trace_files
from offline_judge.runs.store import RESULTS, RunDirectory
from offline_judge.settings import Settings

P = ParamSpec("P")
T = TypeVar("T")

_log = logging.getLogger(__name__)

ASKED = "asked.jsonl"
"""Data file of a run of one question, inside its directory."""

_SHAPING = ("judge", "search", "window", "seed", "lanes", "prompts_dir")
"""Settings a resumed run takes from its manifest, since they shape its judgments."""
_SHOWN = 3
_FREE = ("lanes",)
"""Of these, settings that may be given anew, since they do not shape what is judged."""


@dataclass(frozen=True)
class Limits:
    """Samples at most, and minutes after which none is taken; None for no limit."""

    limit: int | None = None
    minutes: float | None = None

    @property
    def given(self) -> bool:
        """There is a limit, so samples are taken in a fixed random order."""
        return self.limit is not None or self.minutes is not None


@dataclass(frozen=True)
class Order:
    """What is wanted of a run: method with options, limits, and files the run shall keep."""

    method: str
    options: Mapping[str, Any]
    limits: Limits = Limits()
    files: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True)
class DataFile:
    """A data file and how to read it: column to field, and whether bad rows are left out."""

    path: Path
    mapping: Mapping[str, str] = field(default_factory=dict)
    skip_bad: bool = False


@dataclass(frozen=True)
class Question:
    """One question with one response, and how to judge it."""

    question: str
    response: str
    method: str
    options: Mapping[str, Any] = field(default_factory=dict)


def _outside_event_loop(work: Callable[P, T]) -> Callable[P, T]:
    """Let blocking work run an event loop of its own: inside one (a notebook), in a thread.

    All of it in that thread, since a run's files are used by the thread that opened them.
    """

    @wraps(work)
    def called(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return work(*args, **kwargs)
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(work, *args, **kwargs).result()

    return called


@_outside_event_loop
def begin(order: Order, data: DataFile, settings: Settings, listener: RunListener | None) -> str:
    """Judge a data file in a new run; returns the run's id.

    Raises:
        OfflineJudgeError: it could not be begun, or not be carried to an end in good order.
    """
    columns = {name: column for column, name in data.mapping.items()}
    loaded = read_samples(data.path, mapping=columns, skip_bad=data.skip_bad)
    return _begin(order, loaded, settings, listener)


@_outside_event_loop
def ask(asked: Question, settings: Settings, listener: RunListener | None) -> tuple[str, str]:
    """Judge one response in a run of its own; returns the ids of run and sample.

    Raises:
        OfflineJudgeError: as `begin`.
    """
    for name in ("question", "response"):
        if not str(getattr(asked, name)).strip():
            raise UsageError(f"The {name} is empty.", remedy="Both are needed to judge.")
    row = {"question": asked.question, "response": asked.response}
    content = json.dumps(row).encode() + b"\n"
    with TemporaryDirectory() as folder:
        path = Path(folder) / ASKED
        path.write_bytes(content)
        loaded = read_samples(path)
    order = Order(method=asked.method, options=asked.options, files={ASKED: content})
    return _begin(order, loaded, settings, listener), loaded.samples[0].id


@_outside_event_loop
def resume(run_id: str, settings: Settings, limits: Limits, listener: RunListener | None) -> str:
    """Go on with a run; returns its whole id.

    Raises:
        OfflineJudgeError: it may not or could not go on.
    """
    directory = wiring.run_store(settings).open(run_id)
    recorded = directory.manifest()
    settings = wiring.settled(_as_recorded(settings, recorded))
    with take_up(directory, listener) as (desk, writer):
        state = directory.state()
        done = Done(state.samples, state.finished)
        loaded = _load_again(recorded.data, directory)
        check_data(recorded.data, loaded.source, loaded.samples, done)
        order = Order(recorded.method, recorded.options, _widened(limits, recorded))
        with wiring.open_components(
            settings, recorded.method, recorded.options, desk.listeners
        ) as parts:
            now = _manifest(recorded.run_id, order, recorded.data, settings, parts)
            notes = check_same_judge(recorded, now)
            groups = _groups(loaded.samples, settings, order.limits)
            plan = make_plan(groups, limit=order.limits.limit, done=done)
            carry_out(desk, writer, parts, _job(plan, limits, settings, notes, resumed=True))
    return recorded.run_id


def listed(settings: Settings) -> Iterator[tuple[RunManifest, RunSummary]]:
    """Manifest and summary of all runs, newest first, without those that cannot be read.

    Raises:
        StorageError: the folder of runs cannot be read.
    """
    store = wiring.run_store(settings)
    for run_id in reversed(store.ids()):
        directory = store.open(run_id)
        try:
            yield directory.manifest(), _summary(directory)
        except StorageError as error:
            _log.warning("run %s is left out of the list: %s", run_id, error)


def stop(run_id: str, settings: Settings, *, drain: bool) -> None:
    """Ask the process that works on a run to drain or to cancel it.

    Raises:
        RunNotFoundError: no run has this id.
        UsageError: no process works on it.
    """
    directory = wiring.run_store(settings).open(run_id)
    client = ControlClient(settings.runtime_path, directory.run_id)
    try:
        (client.drain if drain else client.cancel)()
    except RunNotFoundError:
        holder = directory.holder()
        if holder is None:
            raise
        raise UsageError(
            f"Process {holder.pid} has run {directory.run_id} but does not listen: it is "
            "starting or ending.",
            remedy=f"Try again in a moment, or: kill -TERM {holder.pid}",
        ) from None


def _begin(order: Order, loaded: Loaded, settings: Settings, listener: RunListener | None) -> str:
    settings = wiring.settled(settings)
    listeners = SafeListeners([listener])
    with wiring.open_components(settings, order.method, order.options, listeners) as parts:
        store = wiring.run_store(settings)
        run_id = store.new_id()
        source = loaded.source
        if order.files:
            path = settings.runs_path.absolute() / run_id / ASKED
            source = source.model_copy(update={"path": str(path)})
        manifest = _manifest(run_id, order, source, settings, parts)
        directory = store.create(manifest, files=order.files)
        with take_up(directory, listeners) as (desk, writer):
            for template in parts.library.sources().values():
                writer.put_blob(template)
            groups = _groups(loaded.samples, settings, order.limits)
            plan = make_plan(groups, limit=order.limits.limit)
            job = _job(plan, order.limits, settings, _left_out(loaded), resumed=False)
            carry_out(desk, writer, parts, job)
    return run_id


def _manifest(
    run_id: str, order: Order, source: DataSource, settings: Settings, parts: wiring.Components
) -> RunManifest:
    limits = {"limit": order.limits.limit, "minutes": order.limits.minutes}
    return RunManifest(
        run_id=run_id,
        created=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        method=order.method,
        options=parts.method.options,
        data=source,
        judge=parts.identity,
        search=parts.search.identity() if parts.search is not None else {},
        prompts=parts.prompts(),
        settings=wiring.recorded_settings(settings, **limits),
        versions=wiring.versions(),
    )


def _job(
    plan: Plan, limits: Limits, settings: Settings, warnings: tuple[str, ...], *, resumed: bool
) -> Job:
    return Job(
        plan=plan,
        lanes=settings.lanes,
        minutes=limits.minutes,
        resumed=resumed,
        warnings=warnings,
        runtime_path=settings.runtime_path,
    )


def _groups(samples: Sequence[Sample], settings: Settings, limits: Limits) -> list[Group]:
    return group_samples(samples, seed=settings.seed if limits.given else None)


def _widened(limits: Limits, recorded: RunManifest) -> Limits:
    """What orders and bounds a resumed run: the limits given now, else those it began with."""

    def wider(name: str, now: Any) -> Any:
        before = recorded.settings.get(name)
        return before.value if now is None and before is not None else now

    return Limits(wider("limit", limits.limit), wider("minutes", limits.minutes))


def _left_out(loaded: Loaded) -> tuple[str, ...]:
    if not loaded.problems:
        return ()
    shown = "; ".join(loaded.problems[:_SHOWN])
    more = "; ..." if len(loaded.problems) > _SHOWN else ""
    return (f"{len(loaded.problems)} bad rows of the data file are left out: {shown}{more}",)


def _summary(directory: RunDirectory) -> RunSummary:
    """The summary as it lies there if nothing was recorded since, else folded anew."""
    results = directory.file(RESULTS)
    traces = [path.stat().st_mtime_ns for path in trace_files(directory.path)]
    if (
        traces
        and not directory.holder()
        and results.exists()
        and results.stat().st_mtime_ns >= max(traces)
    ):
        found = directory.results()
        if found is not None:
            return found
    return directory.state().summary()


def _load_again(recorded: DataSource, directory: RunDirectory) -> Loaded:
    """Read the run's data file as it was read before.

    Raises:
        DataError: it is gone or unreadable.
    """
    path = Path(recorded.path)
    if path.name == ASKED and directory.file(ASKED).exists():
        path = directory.file(ASKED)  # the data directory may have moved
    if not path.exists():
        raise DataError(
            "The data file of this run is gone.",
            where=recorded.path,
            remedy="Put it back where it was and resume, or start a new run.",
        )
    # Whatever is wrong with a row now, that the file has changed is the better message.
    return read_samples(path, mapping=recorded.mapping, skip_bad=True)


def _as_recorded(settings: Settings, recorded: RunManifest) -> Settings:
    """The settings of now, with those that shape judgments as the run recorded them.

    Raises:
        RunChangedError: the user asks for another one by name.
    """
    changes: dict[str, Any] = {}
    for name in _SHAPING:
        if name not in recorded.settings:
            continue
        before, now = recorded.settings[name].value, getattr(settings, name)
        asked = settings.origins.get(name) == "flag" and now != before
        if asked and name not in _FREE:
            raise RunChangedError(
                f"This run has `{name}` {before!r} and cannot go on with {now!r}.",
                where=recorded.run_id,
                remedy="Start a new run for that.",
            )
        if not asked:
            changes[name] = before
    return replace(settings, **changes)
