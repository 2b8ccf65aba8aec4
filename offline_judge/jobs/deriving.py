"""Judging one sample of a run again, with passages of a person's own beside what is searched."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import date as calendar_date
from difflib import get_close_matches
from typing import Any

from offline_judge import wiring
from offline_judge.datasets.fields import FIELDS
from offline_judge.domain.evidence import Passage
from offline_judge.domain.run import Parent, RunManifest
from offline_judge.domain.sample import Sample
from offline_judge.errors import RunChangedError, UsageError
from offline_judge.jobs.beginning import ASKED, Check, begin_loaded, one_row
from offline_judge.jobs.orders import Order
from offline_judge.jobs.resuming import OWN, as_recorded, kept_passages
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


@outside_event_loop
def derive(
    run_id: str,
    sample_id: str,
    passage: Passage,
    settings: Settings,
    listener: RunListener | None,
) -> str:
    """Judge one sample of a run again, as that run did, with one more passage; returns the new id.

    The other run is only read, so it may be going on.

    Raises:
        RunNotFoundError: no run has this id.
        UsageError: the run has not taken up the sample, its method does not search, or it has the
            passage already.
        RunChangedError: weights, prompts or options are not what they were.
        OfflineJudgeError: as `begin`.
    """
    directory = wiring.run_store(settings).open(run_id)
    recorded = directory.manifest()
    if not wiring.build_method(recorded.method, recorded.options).searches:
        raise UsageError(
            f"Method `{recorded.method}` does not search, so no passage reaches its judge.",
            where=recorded.run_id,
            remedy="Add it to a run of `sage`.",
        )
    own = kept_passages(directory)
    if passage in own:
        raise UsageError("That run has this very passage already.", where=recorded.run_id)
    content, loaded = one_row(_row(_sample(directory, sample_id)))
    own = (*own, passage)
    order = Order(
        method=recorded.method,
        options=recorded.options,
        files={ASKED: content, OWN: dump_passages(own)},
        parent=Parent(
            run_id=recorded.run_id, sample_id=sample_id, passages=tuple(p.id for p in own)
        ),
        own=own,
        calibration=recorded.calibration,
    )
    return begin_loaded(
        order, loaded, as_recorded(settings, recorded), listener, _alike(recorded, own)
    )


def _sample(directory: RunDirectory, sample_id: str) -> Sample:
    """The sample as the run took it up, large texts included."""
    found = fold(directory.sample_events(sample_id), directory.run_id).samples
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


def _alike(before: RunManifest, own: Sequence[Passage]) -> Check:
    """Refuses another judge than before; a search that changed is told, since it may not matter."""

    def check(now: RunManifest) -> tuple[str, ...]:
        if changed := changed_judge(before, now):
            raise RunChangedError(
                f"Since that run began, {' and '.join(changed)} changed; the verdicts with and "
                "without your passage would be those of two judges.",
                where=before.run_id,
                remedy="Start a new run with `offline-judge run`, and add the passage to that.",
            )
        return (*_cut(own, now), *_searched_otherwise(before, now))

    return check


def _searched_otherwise(before: RunManifest, now: RunManifest) -> Iterator[str]:
    search = before.search | {"own": now.search.get("own")}
    for what in changed_search(before.model_copy(update={"search": search}), now):
        yield (
            f"Since run {before.run_id} began, {what} changed, so the verdicts differ in more "
            "than the added passage."
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
