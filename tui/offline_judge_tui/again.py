"""Judging a sample again with its evidence changed: a derived run, in a process of its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from offline_judge.errors import OfflineJudgeError, RunNotFoundError, StorageError

if TYPE_CHECKING:
    from offline_judge.api import RunView
    from offline_judge.domain.events import AnyEvent
    from offline_judge.domain.news import News
    from offline_judge.settings import Settings

_LOOK_S = 0.2


@dataclass(frozen=True)
class Target:
    """The sample that is judged again, and the run that judged it, by its whole id."""

    run_id: str
    sample_id: str


@dataclass(frozen=True)
class Change:
    """What is changed of its evidence: a passage is left out by its id, or `text` is added."""

    without: str = ""
    text: str = ""
    title: str = ""
    url: str = ""
    date: str = ""


@dataclass(frozen=True)
class Variant:
    """A sample as a derived run judges it.

    Attributes:
        run_id: The derived run.
        target: What it judges again.
        added: Ids of passages that were added to its evidence.
        without: Ids of passages that were left out.
        verdict: None where it has none, like the probability.
        probability: Of `true`.
        outcome: How judging ended, or `unfinished`.
        reason: Why there is no verdict.
        status: Where the run stands.
        warnings: What a reader of the verdict must know.
    """

    run_id: str
    target: Target
    added: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    verdict: bool | None = None
    probability: float | None = None
    outcome: str = "unfinished"
    reason: str = ""
    status: str = ""
    warnings: tuple[str, ...] = ()


def judge_again(
    target: Target,
    change: Change,
    settings: Settings,
    told: Callable[[str], None],
    given_up: Callable[[], bool],
) -> Variant:
    """Judge it again, in a process of its own; blocks until that has ended.

    Args:
        target: The sample; its own trace is only read.
        change: What is changed of its evidence.
        settings: Where runs are.
        told: Told what happens, on this thread.
        given_up: Asked a few times a second, also on a thread of its own; true cancels the run.

    Raises:
        StartError: it cannot be judged so; what kept it from it.
        InterruptedRunError: it was given up before there was a run.
        OfflineJudgeError: the run failed, or cannot be read.
    """
    from offline_judge import api

    def waiting(said: str) -> bool:
        told(said or "starting")
        return not given_up()

    passage = api.OwnPassage(change.text, change.title, change.url, change.date)
    wanted = change.without or passage
    run_id = api.start_change(target.run_id, target.sample_id, wanted, settings, waiting).run_id
    ended = threading.Event()
    guard = threading.Thread(
        target=_cancel_when,
        args=(given_up, ended, lambda: _cancel(run_id, settings)),
        name=f"cancels judging {target.sample_id} again",
        daemon=True,
    )
    guard.start()
    try:
        _follow(run_id, settings, told)
    finally:
        ended.set()
    view = api.load_run(run_id, settings)
    if view.summary.status == "failed":
        raise OfflineJudgeError(api.run_log(run_id, settings)[-1].text, where=run_id)
    return _variant(view, target)


def _follow(run_id: str, settings: Settings, told: Callable[[str], None]) -> None:
    """Tell what the run does, until no process works on it any more."""
    from offline_judge import api

    while True:
        try:
            with api.watch(run_id, settings) as watch:
                for news in watch:
                    if said := _said(news):
                        told(said)
        except (RunNotFoundError, StorageError):
            if not api.run_holder(run_id, settings):
                return
            # Its process is starting or ending: it holds the run and does not listen.
            time.sleep(_LOOK_S / 2)


def _said(news: News) -> str:
    """What a piece of news says of a run of one sample, in a line."""
    if news.kind == "phase":
        return f"{news.phase}: {news.detail}" if news.detail else news.phase
    if news.progress is not None:
        return next(iter(news.progress.in_flight.values()), "")
    if news.event is not None:
        return _recorded(news.event)
    return ""


def _recorded(event: AnyEvent) -> str:
    match event.event:
        case "search_finished":
            return f"searched for “{getattr(event, 'query', '')}”"
        case "call_finished":
            return f"read: {getattr(event, 'stage', '')}"
        case "engine_started":
            return "the judge is ready"
    return ""


def variants(
    target: Target, settings: Settings, given_up: Callable[[], bool] = lambda: False
) -> list[Variant]:
    """How derived runs have judged the sample so far, oldest first.

    Runs that cannot be read are left out.

    Args:
        target: The sample.
        settings: Where runs are.
        given_up: Asked at each run; true ends the search.

    Raises:
        OfflineJudgeError: the folder of runs cannot be read.
    """
    from offline_judge import api

    found: list[Variant] = []
    for listing in api.run_listings(settings, quick=True):
        if given_up():
            break
        parent = listing.parent
        if parent is not None and Target(parent.run_id, parent.sample_id) == target:
            with suppress(OfflineJudgeError):
                found.append(_variant(api.load_run(listing.id, settings), target))
    return found[::-1]


def _variant(view: RunView, target: Target) -> Variant:
    parent = view.manifest.parent
    row = view.rows[0] if view.rows else None
    return Variant(
        run_id=view.manifest.run_id,
        target=target,
        added=parent.passages if parent is not None else (),
        without=parent.without if parent is not None else (),
        verdict=row.verdict if row is not None else None,
        probability=row.probability if row is not None else None,
        outcome=str(row.outcome) if row is not None else "unfinished",
        reason=row.reason if row is not None else "",
        status=view.summary.status,
        warnings=view.summary.warnings,
    )


def _cancel_when(
    given_up: Callable[[], bool], ended: threading.Event, cancel: Callable[[], bool]
) -> None:
    """Cancel once that is asked for and there is a run to cancel; ends with the work."""
    while not ended.wait(_LOOK_S):
        if given_up() and cancel():
            return


def _cancel(run_id: str, settings: Settings) -> bool:
    """Ask the derived run to stop; false where it does not listen yet."""
    from offline_judge import api

    try:
        api.cancel(run_id, settings)
    except OfflineJudgeError:
        return False
    return True
