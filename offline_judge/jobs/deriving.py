"""Judging one sample of a run again, with its evidence changed by a person."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import date as calendar_date
from difflib import get_close_matches
from typing import Any

from offline_judge import wiring
from offline_judge.datasets.fields import FIELDS
from offline_judge.domain.events import AnyEvent, SearchFinished
from offline_judge.domain.evidence import Amendment, Passage
from offline_judge.domain.run import Parent, RunManifest
from offline_judge.domain.sample import Sample
from offline_judge.errors import RunChangedError, UsageError
from offline_judge.jobs.beginning import ASKED, Check, begin_loaded, one_row
from offline_judge.jobs.orders import Order
from offline_judge.jobs.resuming import OWN, as_recorded, kept_amendment
from offline_judge.jobs.threads import outside_event_loop
from offline_judge.protocols import RunListener
from offline_judge.retrieval.search.own import dump_passages, own_passage
from offline_judge.runner.plan import changed_judge, changed_search
from offline_judge.runs.reducer import fold
from offline_judge.runs.store import RunDirectory
from offline_judge.settings import Settings

LONGEST = 8000
"""Characters of a passage at most: no method shows a judge more of one."""

_LONGEST_TITLE = 200
_DATE = re.compile(r"\d{4}(-\d{2}(-\d{2})?)?\Z")


def write_passage(text: str, *, title: str = "", url: str = "", date: str = "") -> Passage:
    """A passage of a person's own.

    Raises:
        UsageError: the text is empty, too long or not Unicode, or the date is none.
    """
    text, title, url = text.strip(), " ".join(title.split()), "".join(url.split())
    if not text:
        raise UsageError("The passage is empty.")
    if len(text) > LONGEST or len(title) > _LONGEST_TITLE:
        raise UsageError(
            f"The passage has {len(text):,} characters and its title {len(title):,}; at most "
            f"{LONGEST:,} and {_LONGEST_TITLE} are taken.",
            remedy="Give the paragraph that says it.",
        )
    try:
        f"{text}{title}{url}".encode()
    except UnicodeEncodeError:
        raise UsageError("The passage is not Unicode text.", remedy="Save it as UTF-8.") from None
    return own_passage(text, title=title, url=url, date=_checked_date(date.strip()))


@dataclass(frozen=True)
class Change:
    """What is changed of a sample's evidence: a passage is added, or one is left out by its id.

    `new_id` is the id that the derived run shall have, where it is made already.
    """

    add: Passage | None = None
    leave_out: str = ""
    new_id: str = ""


@outside_event_loop
def derive(
    run_id: str,
    sample_id: str,
    change: Change,
    settings: Settings,
    listener: RunListener | None,
) -> str:
    """Judge one sample of a run again, as that run did, with one change; returns the new id.

    The other run is only read, so it may be going on. What it changed itself is carried on.

    Raises:
        RunNotFoundError: no run has this id.
        UsageError: the run has not taken up the sample, its method does not search, it has the
            passage already, or has not found the one that is left out.
        RunChangedError: weights, prompts or options are not what they were.
        OfflineJudgeError: as `begin`.
    """
    directory = wiring.run_store(settings).open(run_id)
    recorded = directory.manifest()
    if not wiring.build_method(recorded.method, recorded.options).searches:
        raise UsageError(
            f"Method `{recorded.method}` does not search, so no passage reaches its judge.",
            where=recorded.run_id,
            remedy="Change the evidence of a run of `sage`.",
        )
    amendment = kept_amendment(directory, recorded)
    events = directory.sample_events(sample_id)
    sample = _sample(directory, sample_id, events)
    amendment = _changed(amendment, change, _found(events), recorded.run_id)
    content, loaded = one_row(_row(sample))
    order = Order(
        method=recorded.method,
        options=recorded.options,
        files={ASKED: content} | ({OWN: dump_passages(amendment.own)} if amendment.own else {}),
        parent=Parent(
            run_id=recorded.run_id,
            sample_id=sample_id,
            passages=tuple(passage.id for passage in amendment.own),
            without=amendment.without,
        ),
        amendment=amendment,
        calibration=recorded.calibration,
        run_id=change.new_id,
    )
    check = _alike(recorded, amendment)
    return begin_loaded(order, loaded, as_recorded(settings, recorded), listener, check)


def _changed(before: Amendment, change: Change, found: Collection[str], run_id: str) -> Amendment:
    own, without = before.own, before.without
    if change.add is not None:
        if change.add in own:
            raise UsageError("That run has this very passage already.", where=run_id)
        own = (*own, change.add)
    if change.leave_out:
        kept = tuple(passage for passage in own if passage.id != change.leave_out)
        if kept == own:
            _check_found(change.leave_out, found, run_id)
            without = (*without, change.leave_out)
        own = kept
    return Amendment(own=own, without=without)


def _check_found(passage_id: str, found: Collection[str], run_id: str) -> None:
    if passage_id in found:
        return
    close = get_close_matches(passage_id, found, n=1)
    raise UsageError(
        f"No search of this sample found a passage `{passage_id}`.",
        where=run_id,
        remedy=f"Did you mean `{close[0]}`?" if close else "`offline-judge show` names them.",
    )


def _found(events: Sequence[AnyEvent]) -> frozenset[str]:
    """Ids of all passages that searches of a sample found."""
    searches = (event for event in events if isinstance(event, SearchFinished))
    return frozenset(hit.passage.id for event in searches for hit in event.hits)


def _sample(directory: RunDirectory, sample_id: str, events: Sequence[AnyEvent]) -> Sample:
    """The sample as the run took it up, large texts included."""
    found = fold(events, directory.run_id).samples
    if sample_id not in found:
        close = get_close_matches(sample_id, directory.state().samples, n=1)
        raise UsageError(
            f"Run {directory.run_id} has not taken up a sample `{sample_id}`.",
            remedy=f"Did you mean `{close[0]}`?" if close else "See: offline-judge runs export",
        )
    if not found[sample_id].response.strip():
        raise UsageError(f"Sample `{sample_id}` has no response, so there is nothing to judge.")
    return found[sample_id]


def _row(sample: Sample) -> dict[str, Any]:
    """The sample as a row whose other columns never take a field's name."""
    fields = sample.model_dump(mode="json", exclude={"metadata"})
    other = {f"metadata.{k}" if k in FIELDS else k: v for k, v in sample.metadata.items()}
    return other | fields


def _alike(before: RunManifest, amendment: Amendment) -> Check:
    """Refuses another judge than before; a search that changed is told, since it may not matter."""

    def check(now: RunManifest) -> tuple[str, ...]:
        if changed := changed_judge(before, now):
            raise RunChangedError(
                f"Since that run began, {' and '.join(changed)} changed; the verdicts before "
                "and after your change would be those of two judges.",
                where=before.run_id,
                remedy="Start a new run with `offline-judge run`, and change the evidence of that.",
            )
        return (*_cut(amendment.own, now), *_searched_otherwise(before, now))

    return check


def _searched_otherwise(before: RunManifest, now: RunManifest) -> Iterator[str]:
    changed = {name: now.search[name] for name in ("own", "without") if name in now.search}
    plain = {k: v for k, v in before.search.items() if k not in ("own", "without")}
    search = plain | changed
    for what in changed_search(before.model_copy(update={"search": search}), now):
        yield (
            f"Since run {before.run_id} began, {what} changed, so the verdicts differ in more "
            "than the change of its evidence."
        )


def _cut(passages: Sequence[Passage], now: RunManifest) -> Iterator[str]:
    """Tell of passages that a prompt of this run does not show to their end."""
    shown = now.options.get("passage_chars")
    for passage in passages:
        if isinstance(shown, int) and len(passage.title) + 2 + len(passage.text) > shown:
            yield (
                f"The judge is shown the first {shown:,} characters of the passage that begins "
                f"“{passage.text[:40]}”, which has {len(passage.text):,}."
            )


def _checked_date(date: str) -> str:
    if not date:
        return ""
    try:
        if not _DATE.match(date):
            raise ValueError("not as ISO 8601 writes it")
        calendar_date.fromisoformat(f"{date}-01-01"[: len("2000-01-01")])
    except ValueError as error:
        raise UsageError(
            f"`{date}` is no date: {error}", remedy="Write 2025, 2025-03 or 2025-03-14."
        ) from None
    return date
