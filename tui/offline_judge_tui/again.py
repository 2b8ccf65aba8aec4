"""Judging a sample again with its evidence changed: a derived run made in this process."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from offline_judge.api import RunView
    from offline_judge.domain.events import AnyEvent
    from offline_judge.domain.progress import Preflight, Progress
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


@dataclass(frozen=True)
class Teller:
    """Listens to the derived run and says in a line what it does."""

    told: Callable[[str], None]

    def phase(self, phase: str, detail: str = "") -> None:
        """The engine or the run entered a phase."""
        self.told(f"{phase}: {detail}" if detail else phase)

    def preflight(self, report: Preflight) -> None:
        """Nothing that a single sample calls for."""

    def progress(self, progress: Progress) -> None:
        """What the sample does now."""
        for doing in progress.in_flight.values():
            self.told(doing)

    def event(self, event: AnyEvent) -> None:
        """An event was recorded."""
        match event.event:
            case "search_finished":
                self.told(f"searched for “{getattr(event, 'query', '')}”")
            case "call_finished":
                self.told(f"read: {getattr(event, 'stage', '')}")


def judge_again(
    target: Target,
    change: Change,
    settings: Settings,
    told: Callable[[str], None],
    given_up: Callable[[], bool],
) -> Variant:
    """Judge it again; blocks until that has ended.

    Args:
        target: The sample; its own trace is only read.
        change: What is changed of its evidence.
        settings: Where runs are.
        told: Told what happens, on this thread.
        given_up: Asked a few times a second, on a thread of its own; true cancels the derived run.

    Raises:
        OfflineJudgeError: as `api.evidence_add` and `api.evidence_drop`.
    """
    from offline_judge import api

    teller, ended = Teller(told), threading.Event()
    before = next((listing.id for listing in api.run_listings(settings, quick=True)), "")
    guard = threading.Thread(
        target=_cancel_when,
        args=(given_up, ended, lambda: _cancel(target, before, settings)),
        name=f"cancels judging {target.sample_id} again",
        daemon=True,
    )
    guard.start()
    try:
        if change.without:
            view = api.evidence_drop(
                target.run_id, target.sample_id, change.without, settings, teller
            )
        else:
            passage = api.OwnPassage(change.text, change.title, change.url, change.date)
            view = api.evidence_add(target.run_id, target.sample_id, passage, settings, teller)
    finally:
        ended.set()
    return _variant(view, target)


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
    from offline_judge.errors import OfflineJudgeError

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


def _cancel(target: Target, before: str, settings: Settings) -> bool:
    """Ask the derived run to stop; false where there is none yet, or it does not listen yet."""
    from offline_judge import api
    from offline_judge.errors import OfflineJudgeError

    try:
        for listing in api.run_listings(settings, quick=True):
            if listing.id <= before:
                break
            parent = listing.parent
            if parent is not None and Target(parent.run_id, parent.sample_id) == target:
                api.cancel(listing.id, settings)
                return True
    except OfflineJudgeError:
        return False
    return False
