"""What a run sets out to judge: limits, what a resumed run reuses, and what forbids resuming."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from offline_judge.domain.events import SampleFinished
from offline_judge.domain.judgment import Outcome
from offline_judge.domain.run import DataSource, RunManifest
from offline_judge.domain.sample import Sample
from offline_judge.errors import RunChangedError

Group = tuple[Sample, ...]
KEPT = (Outcome.SCORED, Outcome.UNSCORED)
"""Outcomes that stand; a sample that ended otherwise is judged again on resume."""

_NEW_RUN = "Start a new run with `offline-judge run`."
_FIRST = 3


@dataclass(frozen=True)
class Plan:
    """What one process of a run does.

    Attributes:
        groups: Samples to judge now, those of one question together.
        planned: Samples of the run within its limit, reused ones included.
        reused: Samples whose outcome stands.
        reused_unscored: Of these, samples without a verdict.
        limited: The limit leaves samples of the data file out.
        notes: What is reused or judged anew and why, one sentence each.
    """

    groups: tuple[Group, ...]
    planned: int
    reused: int = 0
    reused_unscored: int = 0
    limited: bool = False
    notes: tuple[str, ...] = ()

    @property
    def samples(self) -> tuple[Sample, ...]:
        """Samples to judge now, in order."""
        return tuple(chain.from_iterable(self.groups))


@dataclass(frozen=True)
class Done:
    """What earlier processes of a run recorded: samples taken up, and how they ended."""

    samples: Mapping[str, Sample]
    finished: Mapping[str, SampleFinished]


NOTHING = Done({}, {})


def make_plan(groups: Sequence[Group], *, limit: int | None = None, done: Done = NOTHING) -> Plan:
    """Take the first `limit` samples and leave out those whose outcome stands.

    Args:
        groups: All samples in the run's order.
        limit: Samples of the run at most, reused ones included; None takes all. One below what
            is judged already counts as that.
        done: What earlier processes recorded.
    """
    if limit is not None:
        # What was judged stays part of the run, so a limit below that leaves nothing to do.
        limit = max(limit, sum(_standing(sample, done) == "kept" for g in groups for sample in g))
    within = _first(groups, limit)
    planned = sum(map(len, within))
    total = sum(map(len, groups))
    why: Counter[str] = Counter()
    left: list[Group] = []
    unscored = 0
    for group in within:
        anew = []
        for sample in group:
            state = _standing(sample, done)
            why[state] += 1
            unscored += state == "kept" and done.finished[sample.id].outcome is not Outcome.SCORED
            if state != "kept":
                anew.append(sample)
        if anew:
            left.append(tuple(anew))
    notes = _notes(why) if done.samples or done.finished else []
    if planned < total:
        notes.append(f"{total - planned} more samples lie beyond the limit of {limit}.")
    return Plan(tuple(left), planned, why["kept"], unscored, planned < total, tuple(notes))


def check_data(
    recorded: DataSource, now: DataSource, samples: Iterable[Sample], done: Done
) -> None:
    """Refuse a data file that is not the one the run began with.

    Raises:
        RunChangedError: its content differs; names what changed among the samples taken up.
    """
    if recorded.sha256 == now.sha256:
        _check_responses(recorded, now)
        return
    current = {sample.id: sample.content_key() for sample in samples}
    gone = [name for name in done.samples if name not in current]
    changed = [
        name
        for name, sample in done.samples.items()
        if name in current and current[name] != sample.content_key()
    ]
    raise RunChangedError(
        f"The data file is not the one this run began with: it had {recorded.rows} rows and has "
        f"{now.rows}; {_fate(len(done.samples), changed, gone)}.",
        where=now.path,
        remedy=f"Restore the file as it was and resume, or: {_NEW_RUN}",
    )


def _check_responses(recorded: DataSource, now: DataSource) -> None:
    before, after = recorded.responses, now.responses
    if before is None or after is None or before.sha256 == after.sha256:
        return
    raise RunChangedError(
        f"The file of responses is not the one this run began with: it had {before.rows} rows "
        f"and has {after.rows}.",
        where=after.path,
        remedy=f"Restore the file as it was and resume, or: {_NEW_RUN}",
    )


def check_same_judge(recorded: RunManifest, now: RunManifest) -> tuple[str, ...]:
    """Refuse to go on where something else would judge, or other evidence be found.

    Returns:
        Differences that do not forbid resuming but that a reader should know, a sentence each.

    Raises:
        RunChangedError: weights, prompts, options or what is searched differ.
    """
    judge, searched = changed_judge(recorded, now), changed_search(recorded, now)
    if recorded.candidate != now.candidate:
        raise RunChangedError(
            "Since this run began, the candidate changed (its weights, prompts or engine); going "
            "on would mix the responses of two in one figure.",
            where=recorded.run_id,
            remedy=f"Undo the change and resume, or: {_NEW_RUN}",
        )
    if judge or searched:
        mixed = "the verdicts of two judges" if judge else "verdicts on different evidence"
        raise RunChangedError(
            f"Since this run began, {' and '.join([*judge, *searched])} changed; "
            f"going on would mix {mixed} in one figure.",
            where=recorded.run_id,
            remedy=f"Undo the change and resume, or: {_NEW_RUN}",
        )
    return tuple(
        f"{name} was {recorded.versions[name]} when the run began and is {version} now."
        for name, version in now.versions.items()
        if recorded.versions.get(name, version) != version
    )


def changed_judge(before: RunManifest, after: RunManifest) -> list[str]:
    """What differs between two runs in how they judge, for people; empty where nothing does."""
    prompts = _changed_keys(before.prompts, after.prompts)
    parts = (
        ("the weights of the judge", before.judge.sha256, after.judge.sha256),
        ("the options of the method", before.options, after.options),
        (f"the prompts ({prompts})", before.prompts, after.prompts),
    )
    return [what for what, old, new in parts if old != new]


def changed_search(before: RunManifest, after: RunManifest) -> list[str]:
    """What differs between two runs in what they search: the corpus by name, and what of it."""
    if before.search == after.search:
        return []
    if _searched(before) != _searched(after):
        return [f"what is searched ({_searched(before)} then, {_searched(after)} now)"]
    return [f"{_searched(after)} ({_changed_keys(before.search, after.search)})"]


def _searched(manifest: RunManifest) -> str:
    names = (manifest.search.get("provider", ""), f"`{manifest.search.get('name', '')}`")
    return " ".join(str(name) for name in names if name not in ("", "``")) or "nothing"


def _first(groups: Sequence[Group], limit: int | None) -> list[Group]:
    if limit is None:
        return list(groups)
    taken: list[Group] = []
    for group in groups:
        if limit <= 0:
            break
        taken.append(group[:limit])
        limit -= len(group)
    return taken


def _standing(sample: Sample, done: Done) -> str:
    if sample.id not in done.samples:
        return "new"
    if done.samples[sample.id].content_key() != sample.content_key():
        return "other content"
    finished = done.finished.get(sample.id)
    if finished is None:
        return "interrupted"
    return "kept" if finished.outcome in KEPT else str(finished.outcome)


def _notes(why: Counter[str]) -> list[str]:
    wording = (
        ("kept", "reused {n}: already judged."),
        ("error", "judging again {n}: ended in an error."),
        ("cancelled", "judging again {n}: cancelled before."),
        ("interrupted", "judging again {n}: interrupted in the middle."),
        ("other content", "judging again {n}: read differently from the data file than before."),
        ("new", "not yet started: {n}."),
    )
    return [text.format(n=why[state]) for state, text in wording if why[state]]


def _fate(taken: int, changed: Sequence[str], gone: Sequence[str]) -> str:
    if not changed and not gone:
        return (
            f"the {taken} samples taken up so far are all there as they were, so rows were added "
            "or others edited"
        )
    return (
        f"of the {taken} samples taken up so far {_named(changed)} changed and "
        f"{_named(gone)} are gone"
    )


def _named(names: Sequence[str]) -> str:
    if not names:
        return "0"
    more = ", ..." if len(names) > _FIRST else ""
    return f"{len(names)} ({', '.join(names[:_FIRST])}{more})"


def _changed_keys(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    return ", ".join(sorted(k for k in {*before, *after} if before.get(k) != after.get(k)))
