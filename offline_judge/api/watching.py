"""Watching a run that another process works on, and holding it up for a while."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from offline_judge.jobs import Watch
    from offline_judge.settings import Settings


def watch(run_id: str, settings: Settings) -> Watch:
    """News of a run as it goes on, first as it stands; an iterator and a context manager.

    Its `stop` ends the iteration from any thread. It does not tell what happened before: that is
    in the run's trace.

    Args:
        run_id: An id, a prefix that only one run has, or `last`.
        settings: Where runs and their sockets are.

    Raises:
        RunNotFoundError: there is no such run, or no process works on it.
        StorageError: it does not answer; while iterating, it dropped this watcher for lagging.
    """
    from offline_judge import jobs

    return jobs.watch(run_id, settings)


def pause(run_id: str, settings: Settings) -> None:
    """Let a run that another process works on begin nothing new; requests in flight finish.

    The engine stays up. Pauses count neither for limits of time nor for rates. To drain or to
    cancel ends a pause.

    Raises:
        RunNotFoundError: no run has this id, or no process works on it.
        UsageError: that process does not listen.
        StorageError: the run is stopping already.
    """
    from offline_judge import jobs

    jobs.pause(run_id, settings)


def unpause(run_id: str, settings: Settings) -> None:
    """Let a paused run go on; raises as `pause`."""
    from offline_judge import jobs

    jobs.go_on(run_id, settings)
