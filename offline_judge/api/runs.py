"""Judging, and reading what was judged."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from offline_judge.api.derived import judged_before
from offline_judge.api.scoring import run_shortfalls
from offline_judge.api.views import AskOptions, AskView, RunListing, RunRequest, RunView, SampleView

if TYPE_CHECKING:
    from offline_judge.domain.calibration import Calibration
    from offline_judge.jobs.others import Listed
    from offline_judge.protocols import RunListener
    from offline_judge.settings import Settings


def run(request: RunRequest, settings: Settings, listener: RunListener | None = None) -> RunView:
    """Judge a data file; returns when the run has ended, completed or not.

    The summary's status tells how it ended: `completed`, `limit`, `drained` or `cancelled`.

    Raises:
        UsageError: method, option, data file or setting cannot be used.
        MissingError: weights or a package are absent.
        BackendStartError: the engine does not start; what was judged before is kept.
        StorageError: the disk is full or cannot be written; what was recorded before is kept.
    """
    from offline_judge import jobs
    from offline_judge.metrics.gates import SCORED, read_gates

    gates = read_gates(request.fail_under)
    limits = jobs.Limits(request.limit, request.minutes)
    order = jobs.Order(
        request.method,
        request.options,
        limits,
        candidate=request.candidate or "",
        calibration=_calibration(request.calibration),
        needs_labels=any(gate.name != SCORED for gate in gates),
        run_id=request.run_id,
    )
    data = jobs.DataFile(
        Path(request.data),
        request.mapping,
        request.skip_bad,
        form=request.format or "",
        responses=None if request.responses is None else Path(request.responses),
    )
    view = load_run(jobs.begin(order, data, settings, listener), settings)
    run_id = view.manifest.run_id
    return replace(view, shortfalls=run_shortfalls(gates, run_id, view.summary, settings))


def resume(
    run_id: str,
    settings: Settings,
    *,
    limit: int | None = None,
    minutes: float | None = None,
    listener: RunListener | None = None,
) -> RunView:
    """Go on with a run: judge what has no verdict yet, under the settings it began with.

    Samples that are scored or unscored stand; those that ended in an error, were cancelled or
    interrupted are judged again. Without `limit` the run's own limit holds; without `minutes`
    none does.

    Raises:
        RunNotFoundError: no run has this id.
        RunLockedError: another process works on it.
        RunChangedError: data, weights, prompts or what is searched are not what they were.
        OfflineJudgeError: as `run`.
    """
    from offline_judge import jobs

    whole_id = jobs.resume(run_id, settings, jobs.Limits(limit, minutes), listener)
    return load_run(whole_id, settings)


def ask(
    question: str,
    response: str,
    *,
    method: str,
    settings: Settings,
    options: Mapping[str, Any] | AskOptions | None = None,
    listener: RunListener | None = None,
) -> AskView:
    """Judge one response, as a run of one sample whose data file lies in its directory.

    Args:
        question: What was asked.
        response: What is judged.
        method: Name in the method registry.
        settings: Judge, search and where runs are.
        options: The method's own options; or these and a calibration.
        listener: Told each step as it happens.

    Raises:
        OfflineJudgeError: as `run`.
    """
    from offline_judge import jobs

    how = options if isinstance(options, AskOptions) else AskOptions(options or {})
    calibration = _calibration(how.calibration)
    asked = jobs.Question(question, response, method, how.options, calibration)
    run_id, sample_id = jobs.ask(asked, settings, listener)
    found = show(run_id, sample_id, settings)
    return AskView(found.row, found.sample, found.events, load_run(run_id, settings))


def demo(settings: Settings, listener: RunListener | None = None) -> tuple[RunView, ...]:
    """Judge the shipped samples with `direct`, then `sage`, until one is stopped; reuses runs.

    Raises:
        OfflineJudgeError: as `run`.
    """
    from offline_judge.reuse import find_same_run

    views: list[RunView] = []
    data = demo_samples()
    for method in ("direct", "sage"):
        found = find_same_run(method, data, settings, listener)
        if found is None:
            views.append(run(RunRequest(method, data), settings, listener))
        elif found.completed:
            views.append(load_run(found.run_id, settings))
        else:
            views.append(resume(found.run_id, settings, listener=listener))
        if views[-1].summary.status != "completed":
            break
    return tuple(views)


def demo_samples() -> Path:
    """The data file of the demo: twelve labelled samples."""
    from importlib.resources import files

    return Path(str(files("offline_judge.demo") / "samples.jsonl"))


def cancel(run_id: str, settings: Settings, *, drain: bool = False) -> None:
    """Stop a run that another process works on; with `drain` it finishes what is in flight.

    Returns when the run has taken notice, which is before it has ended.

    Raises:
        RunNotFoundError: no run has this id.
        UsageError: no process works on it.
    """
    from offline_judge import jobs

    jobs.stop(run_id, settings, drain=drain)


def load_run(run_id: str, settings: Settings) -> RunView:
    """A run as it stands, also while it goes on.

    Args:
        run_id: An id, a prefix that only one run has, or `last`.
        settings: Where runs are.

    Raises:
        RunNotFoundError: no run has this id.
        StorageError: the run's files are damaged.
    """
    from offline_judge import wiring

    directory = wiring.run_store(settings).open(run_id)
    state, manifest = directory.state(), directory.manifest()
    before = judged_before(manifest, settings)
    return RunView(manifest, state.summary(), tuple(state.rows()), before)


def show(run_id: str, sample_id: str, settings: Settings) -> SampleView:
    """How one sample of a run was judged.

    Raises:
        RunNotFoundError: no run has this id.
        UsageError: the run has not taken up a sample of this id.
        StorageError: the run's files are damaged.
    """
    from offline_judge import wiring
    from offline_judge.errors import UsageError
    from offline_judge.runs.reducer import fold

    directory = wiring.run_store(settings).open(run_id)
    events = directory.sample_events(sample_id)
    state = fold(events, directory.run_id)
    if sample_id not in state.samples:
        raise UsageError(
            f"Run {directory.run_id} has not taken up a sample `{sample_id}`.",
            remedy=_advice(sample_id, directory.state().samples),
        )
    manifest = directory.manifest()
    return SampleView(
        state.rows()[0],
        state.samples[sample_id],
        tuple(events),
        parent=manifest.parent,
        before=judged_before(manifest, settings),
    )


def list_runs(settings: Settings) -> list[RunListing]:
    """All runs, newest first; runs whose files are damaged are left out of the list.

    Raises:
        StorageError: the folder of runs cannot be read.
    """
    return list(run_listings(settings))


def run_listings(
    settings: Settings, passed_over: Collection[str] = (), *, quick: bool = False
) -> Iterator[RunListing]:
    """As `list_runs`, each run as soon as it is read, without those whose ids are passed over.

    With `quick` the samples of a run are not counted where that takes long: see `counted`.
    """
    from offline_judge import jobs

    for one in jobs.listed(settings, passed_over, quick=quick):
        yield _listing(one)


def run_listing(run_id: str, settings: Settings) -> RunListing:
    """One run as the list of runs has it.

    Raises:
        RunNotFoundError: no run has this id.
        StorageError: the run's files are damaged.
    """
    from offline_judge import jobs, wiring

    return _listing(jobs.listed_run(wiring.run_store(settings).open(run_id)))


def remove_run(run_id: str, settings: Settings) -> None:
    """Delete a run for good.

    Args:
        run_id: Its whole id: what is begun like several others, or `last`, deletes nothing.
        settings: Where runs are.

    Raises:
        RunNotFoundError: no run has this very id.
        RunLockedError: a process works on it.
        StorageError: it could not be deleted.
    """
    from offline_judge import wiring

    wiring.run_store(settings).remove(run_id)


def export_rows(run_id: str, settings: Settings) -> Iterator[dict[str, Any]]:
    """One flat dict a sample taken up: its fields, then its metadata.

    A metadata column with the name of a field is called `metadata.<column>`.

    Raises:
        RunNotFoundError: no run has this id.
        StorageError: the run's files are damaged.
    """
    for row in load_run(run_id, settings).rows:
        flat = row.model_dump(mode="json", exclude={"metadata"})
        flat["citations"] = " ".join(row.citations)
        for name, value in row.metadata.items():
            flat[f"metadata.{name}" if name in flat else name] = value
        yield flat


def _listing(one: Listed) -> RunListing:
    return RunListing(
        one.manifest, one.status, one.planned, one.outcomes, one.agreement, counted=one.counted
    )


def _calibration(path: Path | None) -> Calibration | None:
    from offline_judge.calibration.files import read_calibration

    return None if path is None else read_calibration(Path(path))


def _advice(wanted: str, known: Iterable[str]) -> str:
    from difflib import get_close_matches

    close = get_close_matches(wanted, known, n=1)
    return f"Did you mean `{close[0]}`?" if close else "See: offline-judge runs export"
