"""Going on with a run, under the settings it began with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from offline_judge import wiring
from offline_judge.datasets.readers import Loaded, read_samples
from offline_judge.domain.evidence import Amendment
from offline_judge.domain.run import RunManifest
from offline_judge.errors import (
    DataError,
    RunChangedError,
)
from offline_judge.jobs.beginning import (
    ASKED,
    job_of,
    manifest_of,
    open_author,
    sample_groups,
)
from offline_judge.jobs.orders import Limits, Order
from offline_judge.jobs.threads import outside_event_loop
from offline_judge.protocols import RunListener
from offline_judge.registry import FORMS
from offline_judge.retrieval.search.own import load_passages
from offline_judge.runner.candidate.responses import answered
from offline_judge.runner.launch import carry_out, take_up
from offline_judge.runner.plan import (
    Done,
    check_data,
    check_same_judge,
    make_plan,
)
from offline_judge.runs.reducer import RunState
from offline_judge.runs.store import RunDirectory
from offline_judge.settings import Settings

_SHAPING = (
    *("judge", "engine", "search", "embedder", "window", "seed", "lanes", "prompts_dir"),
    *("adapter", "kv_cache", "speculative", "thinking_tokens", "base_url", "allow_remote"),
    *("offline", "locale", "max_age_days", "memory_similarity"),
)
"""Settings a resumed run takes from its manifest, since they shape its judgments."""

_FREE = ("lanes", "base_url", "allow_remote")
"""Of these, settings that may be given anew, since they do not shape what is judged."""


OWN = "own-passages.json"
"""A derived run's own passages, inside its directory."""


@outside_event_loop
def resume(run_id: str, settings: Settings, limits: Limits, listener: RunListener | None) -> str:
    """Go on with a run; returns its whole id.

    Raises:
        OfflineJudgeError: it may not or could not go on.
    """
    directory = wiring.run_store(settings).open(run_id)
    recorded = directory.manifest()
    settings = wiring.settled(as_recorded(settings, recorded))
    amendment = kept_amendment(directory, recorded)
    with take_up(directory, listener) as (desk, writer):
        state = directory.state()
        done = Done(state.samples, state.finished)
        loaded = load_again(recorded, directory)
        samples = [answered(sample, state.written) for sample in loaded.samples]
        check_data(recorded.data, loaded.source, samples, done)
        widened = _widened(limits, recorded)
        order = Order(
            recorded.method,
            recorded.options,
            widened,
            parent=recorded.parent,
            amendment=amendment,
            candidate=recorded.candidate.name if recorded.candidate else "",
            calibration=recorded.calibration,
        )
        with wiring.open_components(
            settings, recorded.method, recorded.options, desk.listeners, amendment=amendment
        ) as parts:
            now = manifest_of(recorded.run_id, order, recorded.data, settings, parts)
            author, _ = open_author(order, settings, now)
            if author is not None:
                now = now.model_copy(update={"candidate": author.identity})
            notes = check_same_judge(recorded, now)
            groups = sample_groups(samples, settings, order.limits)
            plan = make_plan(groups, limit=order.limits.limit, done=done)
            job = job_of(plan, limits, settings, notes, resumed=True)
            job = replace(job, calibration=recorded.calibration)
            if author is not None:
                job = replace(job, candidate=author.candidate, written=state.written)
            carry_out(desk, writer, _alike(parts, recorded, state), job)
    return recorded.run_id


def _alike(parts: wiring.Components, recorded: RunManifest, state: RunState) -> wiring.Components:
    """The parts, which must judge in the way that the run's verdicts so far were come to."""
    judged = (row.judgment for row in state.finished.values())
    ways = {judgment.probability is not None for judgment in judged if judgment is not None}
    if recorded.calibration is not None:
        ways.add(True)
    return parts.demanding(probabilities=True in ways) if ways else parts


def _widened(limits: Limits, recorded: RunManifest) -> Limits:
    """What orders and bounds a resumed run: the limits given now, else those it began with."""

    def wider(name: str, now: Any) -> Any:
        before = recorded.settings.get(name)
        return before.value if now is None and before is not None else now

    return Limits(wider("limit", limits.limit), wider("minutes", limits.minutes))


def load_again(run: RunManifest, directory: RunDirectory) -> Loaded:
    """Read the run's data as it was read before.

    Raises:
        DataError: a file is gone or unreadable.
    """
    recorded = run.data
    path = Path(recorded.path)
    if path.name == ASKED and directory.file(ASKED).exists():
        path = directory.file(ASKED)  # the data directory may have moved
    responses = Path(recorded.responses.path) if recorded.responses else None
    for file, what in ((path, "data file"), (responses, "file of responses")):
        if file is not None and not file.exists():
            raise DataError(
                f"The {what} of this run is gone.",
                where=str(file),
                remedy="Put it back where it was and resume, or start a new run.",
            )
    # Whatever is wrong with a row now, that the file has changed is the better message.
    return read_samples(
        path,
        mapping=recorded.mapping,
        skip_bad=True,
        form=recorded.format if recorded.format in FORMS else "",
        responses=responses,
        unanswered=run.candidate is not None,
    )


def kept_amendment(directory: RunDirectory, recorded: RunManifest) -> Amendment:
    """What a person changed of the evidence of a derived run; nothing in any other.

    Raises:
        StorageError: the file of passages is damaged.
    """
    path = directory.file(OWN)
    own = load_passages(path.read_bytes(), str(path)) if path.exists() else ()
    return Amendment(own=own, without=recorded.parent.without if recorded.parent else ())


def as_recorded(settings: Settings, recorded: RunManifest) -> Settings:
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
    if _by_words(recorded.search):
        # Vectors that were made since then would be another way of searching.
        changes["embedder"] = wiring.NO_EMBEDDER
    return replace(settings, **changes)


def _by_words(search: Mapping[str, Any]) -> bool:
    """Whether a run searched with no embedder at all, neither in a corpus nor in the memory."""
    memory = search if search.get("provider") == "memory" else search.get("memory", {})
    return (search.get("mode") == "words" or search is memory) and not memory.get("embedder")
