"""Beginning a run: data, parts and a run directory brought together."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from offline_judge import wiring
from offline_judge.calibration.identity import check_fits
from offline_judge.datasets.order import group_samples
from offline_judge.datasets.readers import Loaded, read_samples
from offline_judge.domain.run import DataSource, RunManifest
from offline_judge.domain.sample import Sample
from offline_judge.errors import DataError, UsageError
from offline_judge.jobs.orders import DataFile, Limits, Order, Question
from offline_judge.jobs.threads import outside_event_loop
from offline_judge.protocols import RunListener
from offline_judge.runner.launch import Job, carry_out, take_up
from offline_judge.runner.listeners import SafeListeners
from offline_judge.runner.plan import (
    Group,
    Plan,
    make_plan,
)
from offline_judge.runs.writer import TraceWriter
from offline_judge.settings import Settings

ASKED = "asked.jsonl"
"""Data file of a run of one question, inside its directory."""

Check = Callable[[RunManifest], tuple[str, ...]]
"""Looks at a run before it begins: raises, or gives what a reader of the results must know."""

_SHOWN = 3


@outside_event_loop
def begin(order: Order, data: DataFile, settings: Settings, listener: RunListener | None) -> str:
    """Judge a data file in a new run; returns the run's id.

    Raises:
        OfflineJudgeError: it could not be begun, or not be carried to an end in good order.
    """
    if data.responses is not None and order.candidate:
        raise UsageError(
            "Responses are either joined or written.",
            remedy="Leave --responses out, or --candidate.",
        )
    loaded = read_samples(
        data.path,
        mapping={name: column for column, name in data.mapping.items()},
        skip_bad=data.skip_bad,
        form=data.form,
        responses=data.responses,
        unanswered=bool(order.candidate),
    )
    if order.needs_labels and all(sample.label is None for sample in loaded.samples):
        raise DataError(
            "No sample has a label, so what is asked of the run's agreement cannot be told.",
            where=str(data.path),
            remedy="Name the column of labels with --map COLUMN=label, or judge without "
            "--fail-under and use `offline-judge score RUN --labels FILE`.",
        )
    return begin_loaded(order, loaded, settings, listener)


@outside_event_loop
def ask(asked: Question, settings: Settings, listener: RunListener | None) -> tuple[str, str]:
    """Judge one response in a run of its own; returns the ids of run and sample.

    Raises:
        OfflineJudgeError: as `begin`.
    """
    for name in ("question", "response"):
        if not str(getattr(asked, name)).strip():
            raise UsageError(f"The {name} is empty.", remedy="Both are needed to judge.")
    content, loaded = one_row({"question": asked.question, "response": asked.response})
    order = Order(
        asked.method, asked.options, files={ASKED: content}, calibration=asked.calibration
    )
    return begin_loaded(order, loaded, settings, listener), loaded.samples[0].id


def one_row(row: Mapping[str, Any]) -> tuple[bytes, Loaded]:
    """A data file of one row, for a run to keep as `ASKED`, and what is read from it."""
    content = json.dumps(row).encode() + b"\n"
    with TemporaryDirectory() as folder:
        path = Path(folder) / ASKED
        path.write_bytes(content)
        return content, read_samples(path)


def begin_loaded(
    order: Order,
    loaded: Loaded,
    settings: Settings,
    listener: RunListener | None,
    check: Check = lambda _manifest: (),
) -> str:
    """Judge samples that are read already in a new run; returns the run's id.

    Raises:
        OfflineJudgeError: as `begin`, and what `check` raises.
    """
    settings = wiring.settled(settings)
    listeners = SafeListeners([listener])
    with wiring.open_components(
        settings, order.method, order.options, listeners, amendment=order.amendment
    ) as parts:
        store = wiring.run_store(settings)
        run_id = order.run_id or store.new_id()
        source = loaded.source
        if order.files:
            path = settings.runs_path.absolute() / run_id / ASKED
            source = source.model_copy(update={"path": str(path)})
        manifest = manifest_of(run_id, order, source, settings, parts)
        author, kin = open_author(order, settings, manifest)
        if author is not None:
            manifest = manifest.model_copy(update={"candidate": author.identity})
        warnings = (*check(manifest), *_misfits(manifest), *kin, *_left_out(loaded))
        directory = store.create(manifest, files=order.files)
        with take_up(directory, listeners) as (desk, writer):
            keep_sources(writer, parts, author)
            groups = sample_groups(loaded.samples, settings, order.limits)
            plan = make_plan(groups, limit=order.limits.limit)
            job = job_of(plan, order.limits, settings, warnings, resumed=False)
            job = replace(job, calibration=order.calibration)
            if author is not None:
                job = replace(job, candidate=author.candidate)
            demanding = parts.demanding(probabilities=True) if order.calibration else parts
            carry_out(desk, writer, demanding, job)
    return run_id


def open_author(
    order: Order, settings: Settings, manifest: RunManifest
) -> tuple[wiring.CandidateParts | None, tuple[str, ...]]:
    """Who writes the missing responses, and a warning where the judge is of its kind.

    Raises:
        OfflineJudgeError: it cannot be had.
    """
    if not order.candidate:
        return None, ()
    author = wiring.open_candidate(order.candidate, settings)
    return author, wiring.kinship(manifest.judge, author.identity.model)


def keep_sources(
    writer: TraceWriter, parts: wiring.Components, author: wiring.CandidateParts | None
) -> None:
    """Keep the source of every template with the run."""
    libraries = [parts.library] + ([author.candidate.library] if author is not None else [])
    for library in libraries:
        for template in library.sources().values():
            writer.put_blob(template)


def manifest_of(
    run_id: str, order: Order, source: DataSource, settings: Settings, parts: wiring.Components
) -> RunManifest:
    """All that shapes the judgments of this run, as `run.json` keeps it."""
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
        leaves_machine=wiring.leaves_machine(settings, order.candidate or settings.judge),
        parent=order.parent,
        calibration=order.calibration,
    )


def job_of(
    plan: Plan, limits: Limits, settings: Settings, warnings: tuple[str, ...], *, resumed: bool
) -> Job:
    """The plan and its limits, as the runner takes them."""
    return Job(
        plan=plan,
        lanes=settings.lanes,
        minutes=limits.minutes,
        resumed=resumed,
        warnings=warnings,
        runtime_path=settings.runtime_path,
    )


def sample_groups(samples: Sequence[Sample], settings: Settings, limits: Limits) -> list[Group]:
    """Samples by question: in the file's order, or with a limit in a fixed random one."""
    return group_samples(samples, seed=settings.seed if limits.given else None)


def _misfits(manifest: RunManifest) -> tuple[str, ...]:
    """What must be known of the run's calibration.

    Raises:
        RunChangedError: it was fitted for another judge.
    """
    calibration = manifest.calibration
    return () if calibration is None else check_fits(calibration, manifest)


def _left_out(loaded: Loaded) -> tuple[str, ...]:
    if not loaded.problems:
        return loaded.notes
    shown = "; ".join(loaded.problems[:_SHOWN])
    more = "; ..." if len(loaded.problems) > _SHOWN else ""
    bad = f"{len(loaded.problems)} bad rows of the data file are left out: {shown}{more}"
    return (bad, *loaded.notes)
