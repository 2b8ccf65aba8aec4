"""Work away from the screen: named threads whose results come back to it, and that can be ended."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, TypeVar, cast

from textual import on
from textual.message import Message
from textual.screen import Screen
from textual.worker import Worker, get_current_worker

from offline_judge.errors import OfflineJudgeError
from offline_judge_tui.text import line

if TYPE_CHECKING:
    from offline_judge.settings import Settings
    from offline_judge_tui.app import OfflineJudgeApp

T = TypeVar("T")
_log = logging.getLogger(__name__)


class Job:
    """Work under way, as the work itself sees it; used from its thread.

    Args:
        screen: For which it is done.
        worker: That does it.
    """

    def __init__(self, screen: Desk, worker: Worker[None]) -> None:
        self._screen = screen
        self._worker = worker

    @property
    def stopped(self) -> bool:
        """Nobody wants the result any more; long work asks this from time to time."""
        return self._worker.is_cancelled

    def tell(self, take_up: Callable[[], None]) -> None:
        """Do something on the screen's own thread, if it is still wanted and the screen there."""
        # Posted, not called and waited for: a screen that is going away answers nobody.
        if not self._worker.is_cancelled:
            self._screen.post_message(Done(self._worker, take_up))


class Done(Message):
    """Work has come to an end; `take_up` goes on with it on the screen's own thread."""

    def __init__(self, worker: Worker[None], take_up: Callable[[], None]) -> None:
        super().__init__()
        self.worker = worker
        self.take_up = take_up


class Desk(Screen[None]):
    """A screen that has work done elsewhere.

    What fails with one of the program's own errors becomes a message; so does a fault of the
    program, which the user can report, because a screen must outlive both.
    """

    def __init__(self) -> None:
        super().__init__()
        self._ends: dict[str, Callable[[], None]] = {}

    @property
    def home(self) -> OfflineJudgeApp:
        """The application, by its own type."""
        return cast("OfflineJudgeApp", self.app)

    @property
    def settings(self) -> Settings:
        """Of this call of the program."""
        return self.home.settings

    def have_done(
        self,
        name: str,
        work: Callable[[Job], T],
        then: Callable[[T], None] = lambda _result: None,
        failed: Callable[[OfflineJudgeError], None] | None = None,
    ) -> Worker[None]:
        """Let a thread work, and take its result up on the screen; an earlier one ends.

        Args:
            name: Of the work; one of a name is done at a time.
            work: What to do. It must not touch the screen.
            then: Given the result, on the screen's own thread, unless the work was ended.
            failed: Given what it failed with; by default that is shown.
        """
        self.end(name)
        job = partial(self._do, name, work, then, failed or self.told)
        return self.run_worker(
            job, name=name, group=name, thread=True, exclusive=True, exit_on_error=False
        )

    def ends_by(self, name: str, end: Callable[[], None]) -> None:
        """Say how to wake work that waits for something; called from its thread."""
        self._ends[name] = end

    def end(self, name: str) -> None:
        """End the work of a name; does nothing where there is none."""
        for worker in self.workers:
            if worker.group == name and worker.node is self:
                worker.cancel()
        wake = self._ends.pop(name, None)
        if wake is not None:
            wake()

    def on_unmount(self) -> None:
        """Nothing goes on for a screen that is gone."""
        for name in tuple(self._ends):
            self.end(name)

    def told(self, error: OfflineJudgeError) -> None:
        """Show an error: what is wrong, where, and what can be done."""
        parts = (error.message, error.where and f"at {error.where}", error.remedy)
        said = "\n".join(line(part) for part in parts if part)
        self.notify(said, title="That did not work", severity="error", timeout=12, markup=False)

    def say(self, text: str) -> None:
        """A short message."""
        self.notify(line(text), markup=False)

    def warn(self, text: str) -> None:
        """A short message about something that is not as it should be."""
        self.notify(line(text), severity="warning", timeout=8, markup=False)

    def _do(
        self,
        name: str,
        work: Callable[[Job], T],
        then: Callable[[T], None],
        failed: Callable[[OfflineJudgeError], None],
    ) -> None:
        job = Job(self, get_current_worker())
        try:
            result = work(job)
        except OfflineJudgeError as error:
            job.tell(partial(failed, error))
        except Exception as error:  # noqa: BLE001 - a fault in one piece of work must not end the UI
            _log.exception("work `%s` failed", name)
            fault = OfflineJudgeError(f"{name}: {type(error).__name__}: {error}")
            job.tell(partial(failed, fault))
        else:
            job.tell(partial(then, result))

    @on(Done)
    def _take_up(self, message: Done) -> None:
        message.stop()
        if not message.worker.is_cancelled and self.is_attached and self.is_running:
            message.take_up()
