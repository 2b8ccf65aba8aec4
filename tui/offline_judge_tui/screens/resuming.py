"""Going on with a run in a process of its own, from any screen."""

from __future__ import annotations

from collections.abc import Callable

from offline_judge_tui.bridge import Desk, Job


def resume(screen: Desk, run_id: str, then: Callable[[], None]) -> None:
    """Start the process that `offline-judge resume` starts.

    Args:
        screen: Where its progress and errors are told.
        run_id: The run.
        then: Called once the process has taken the run up.
    """
    settings = screen.settings

    def work(job: Job) -> None:
        from offline_judge import api

        api.start_resume(run_id, settings, waiting=lambda _said: not job.stopped)

    def done(_nothing: None) -> None:
        screen.home.begun(run_id)
        then()

    screen.say(f"Taking up run {run_id} …")
    screen.have_done(f"resuming {run_id}", work, done)
