"""Runs derived from others: one sample judged again with its evidence changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from offline_judge.api.views import OwnPassage, RunView

if TYPE_CHECKING:
    from offline_judge.domain.run import RunManifest
    from offline_judge.protocols import RunListener
    from offline_judge.runs.reducer import SampleRow
    from offline_judge.settings import Settings


def evidence_add(
    run_id: str,
    sample_id: str,
    passage: OwnPassage,
    settings: Settings,
    listener: RunListener | None = None,
    *,
    new_id: str = "",
) -> RunView:
    """Judge a sample of a run again, as that run did, with a passage of your own.

    The passage stands behind what the first search finds, in place of its last hits; what a
    derived run has changed already is carried on. The new run names its parent, which is only read
    and may be going on.

    Args:
        run_id: An id, a prefix that only one run has, or `last`.
        sample_id: A sample that the run has taken up.
        passage: What to add to its evidence.
        settings: Where runs are; what shapes judgments is taken from the run.
        listener: Told what happens.
        new_id: The id that the new run shall have, one that `start_change` has made; "" makes one.

    Returns:
        The new run: its one row is how the sample is judged now, `before` how it was.

    Raises:
        RunNotFoundError: no run has this id.
        UsageError: the passage cannot be used, the run has not taken up the sample, or its method
            does not search.
        RunChangedError: weights, prompts or options are not what they were.
        OfflineJudgeError: as `run`.
    """
    from offline_judge import jobs
    from offline_judge.api.runs import load_run

    written = jobs.write_passage(
        passage.text, title=passage.title, url=passage.url, date=passage.date
    )
    change = jobs.Change(add=written, new_id=new_id)
    return load_run(jobs.derive(run_id, sample_id, change, settings, listener), settings)


def evidence_drop(
    run_id: str,
    sample_id: str,
    passage_id: str,
    settings: Settings,
    listener: RunListener | None = None,
    *,
    new_id: str = "",
) -> RunView:
    """Judge a sample of a run again, as that run did, without one piece of its evidence.

    The next further hit of a search stands in for it. All else is as of `evidence_add`.

    Args:
        run_id: An id, a prefix that only one run has, or `last`.
        sample_id: A sample that the run has taken up.
        passage_id: A passage that its searches found, or that was added to it.
        settings: Where runs are; what shapes judgments is taken from the run.
        listener: Told what happens.
        new_id: As of `evidence_add`.

    Raises:
        RunNotFoundError: no run has this id.
        UsageError: no search of the sample found the passage, or see `evidence_add`.
        RunChangedError: weights, prompts or options are not what they were.
        OfflineJudgeError: as `run`.
    """
    from offline_judge import jobs
    from offline_judge.api.runs import load_run

    change = jobs.Change(leave_out=passage_id, new_id=new_id)
    return load_run(jobs.derive(run_id, sample_id, change, settings, listener), settings)


def judged_before(manifest: RunManifest, settings: Settings) -> SampleRow | None:
    """How a derived run's sample was judged in its parent; None where that cannot be told."""
    from offline_judge import wiring
    from offline_judge.errors import RunNotFoundError, StorageError
    from offline_judge.runs.reducer import fold

    if manifest.parent is None:
        return None
    try:
        parent = wiring.run_store(settings).open(manifest.parent.run_id)
        state = fold(parent.sample_events(manifest.parent.sample_id), parent.run_id)
    except (RunNotFoundError, StorageError):
        return None  # it may have been deleted, which takes nothing from this run
    rows = [row for row in state.rows() if row.id == manifest.parent.sample_id]
    return rows[0] if rows else None
