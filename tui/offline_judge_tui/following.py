"""Following a run that another process works on, from a thread, until it lets go of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from offline_judge.domain.news import News
from offline_judge.errors import RunNotFoundError, StorageError

if TYPE_CHECKING:
    from offline_judge.settings import Settings
    from offline_judge_tui.bridge import Job
    from offline_judge_tui.run_state import RunState

WAIT_S = 0.3
"""Seconds between two tries to reach a process that has the run and does not listen yet."""


def follow(
    run_id: str,
    settings: Settings,
    state: RunState,
    job: Job,
    ends_by: Callable[[Callable[[], None]], None],
) -> None:
    """Add the news of a run up in `state`; returns when no process works on it any more.

    Args:
        run_id: The run.
        settings: Where it is.
        state: Takes the news.
        job: Says when nobody wants them any more.
        ends_by: Told what wakes this thread while it waits for news.

    Raises:
        RunNotFoundError: the run was deleted meanwhile.
    """
    from offline_judge import api

    while not job.stopped:
        try:
            watch = api.watch(run_id, settings)
        except (RunNotFoundError, StorageError) as error:
            if not api.run_holder(run_id, settings):
                return
            # Its process is starting or ending: it holds the run and does not listen.
            state.take(News("phase", phase="waiting", detail=error.message))
            time.sleep(WAIT_S)
            continue
        ends_by(watch.stop)
        try:
            with watch:
                for news in watch:
                    state.take(news, api.log_line(news.event) if news.event is not None else None)
        except StorageError:
            # Dropped for lagging behind: what was missed is in the trace.
            continue
