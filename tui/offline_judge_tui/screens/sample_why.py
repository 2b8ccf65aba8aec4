"""The part of the sample screen that judges again and shows what that moved."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from textual.worker import get_current_worker

from offline_judge_tui.again import Change, Target, Variant, judge_again, variants
from offline_judge_tui.screens.judging_again import OwnPassageScreen, WithoutScreen
from offline_judge_tui.widgets.why_pane import WhyPane, changed, moved

if TYPE_CHECKING:
    from offline_judge.settings import Settings
    from offline_judge_tui.screens.sample import SampleScreen


class Why:
    """Judges the screen's sample again, one change at a time.

    Args:
        screen: Shows the sample.
    """

    def __init__(self, screen: SampleScreen) -> None:
        self._screen = screen
        self._variants: list[Variant] = []
        self._draft = Change()
        self._running: Change | None = None
        self._given_up = False

    @property
    def _pane(self) -> WhyPane:
        return self._screen.query_one(WhyPane)

    def begin(self) -> None:
        """Another sample is shown: look for the runs derived from it."""
        self._variants = []
        if self._running is None:
            self._pane.finish("")
        self._show()
        if (target := self._target()) is not None:
            look = partial(variants, target, self._screen.settings)
            self._work("variants", "look for derived runs", look)

    def ask_without(self) -> None:
        """Ask whether to judge again without the chosen piece of evidence."""
        one = self._screen.chosen
        if one is None:
            self._pane.finish("Choose a piece of evidence in the tree first.", bad=True)
            return
        if self._is_free():
            change = Change(without=one.passage.id)
            asked = WithoutScreen(self.names().get(one.passage.id, one.passage.id), self._cost())
            self._screen.app.push_screen(asked, lambda yes: self._judge(change) if yes else None)

    def ask_own(self, problem: str = "") -> None:
        """Ask for a passage of one's own."""
        if self._is_free():
            self._screen.app.push_screen(OwnPassageScreen(self._draft, problem), self._take_draft)

    def stop(self) -> None:
        """Cancel the derived run."""
        if self._running is not None:
            self._given_up = True
            self._pane.begin("stopping …")

    def take(self, result: Any) -> None:
        """Take what a thread brought: the variants so far, or one more."""
        if isinstance(result, Variant):
            change, self._running = self._running, None
            if change is not None and change.text:
                self._draft = Change()
            if result.target != self._target():
                told = f"Sample {result.target.sample_id} was judged again meanwhile."
                self._screen.notify(told, markup=False)
                self._pane.finish("")
                return
            self._variants.append(result)
            self._told(result)
        else:
            self._variants = result
        self._show()

    def fail(self, group: str, error: BaseException) -> None:
        """Say why nothing came; a passage that cannot be used is asked for again."""
        from offline_judge.errors import UsageError
        from offline_judge_tui.screens.sample_head import problem

        told = problem(error).plain
        change = self._running
        if group == "again":
            self._running = None
        self._pane.finish(told, bad=True)
        if (
            group == "again"
            and change is not None
            and change.text
            and isinstance(error, UsageError)
        ):
            self.ask_own(told)

    def names(self) -> dict[str, str]:
        """Passage id to what a person knows it by."""
        if self._screen.reading is None:
            return {}
        found = self._screen.reading.trace.evidence.values()
        return {
            one.passage.id: f"[{one.name}] {one.passage.title}".strip()
            if one.name
            else one.passage.title
            for one in found
            if one.name or one.passage.title
        }

    def _judge(self, change: Change) -> None:
        target = self._target()
        if target is None:
            return
        self._running, self._given_up = change, False
        self._pane.begin("starting the judge …")
        work = partial(_judge, target, change, self._screen.settings, self._tell, self._is_given_up)
        self._work("again", f"judge {target.sample_id} again", work)

    def _take_draft(self, change: Change | None) -> None:
        if change is not None:
            self._draft = change
            self._judge(change)

    def _tell(self, doing: str) -> None:
        """On the worker's thread: show what the derived run does."""
        self._screen.call_later(self._doing, doing)

    def _doing(self, doing: str) -> None:
        if self._running is not None and not self._given_up:
            self._pane.begin(doing)

    def _told(self, one: Variant) -> None:
        reading = self._screen.reading
        if reading is None:
            return
        if one.probability is None:
            self._pane.finish(f"{changed(one, self.names())}: {one.reason or one.status}", bad=True)
        else:
            by = moved(one, reading.view.row)
            told = f"{changed(one, self.names())}: {one.probability:.2f} of true ({by})"
            self._pane.finish(told)

    def _show(self) -> None:
        if self._screen.reading is not None:
            self._pane.show(self._screen.reading.view.row, self._variants, self.names())

    def _target(self) -> Target | None:
        reading = self._screen.reading
        return None if reading is None else Target(reading.run_id, reading.sample_id)

    def _is_free(self) -> bool:
        if self._running is not None:
            self._screen.notify("It is being judged again already.", markup=False)
            return False
        return self._screen.reading is not None

    def _is_given_up(self) -> bool:
        return self._given_up

    def _cost(self) -> str:
        reading = self._screen.reading
        seconds = reading.view.row.seconds if reading is not None else 0.0
        return (
            f"It took {seconds:,.0f} s the first time; what stays as it was comes from the cache."
        )

    def _work(self, group: str, name: str, work: Callable[[], Any]) -> None:
        self._screen.run_worker(
            work, name=name, group=group, exclusive=True, thread=True, exit_on_error=False
        )


def _judge(
    target: Target,
    change: Change,
    settings: Settings,
    told: Callable[[str], None],
    given_up: Callable[[], bool],
) -> Variant:
    """Judge again on a worker's thread; a worker that is cancelled, as at the end, gives it up."""
    worker = get_current_worker()
    return judge_again(target, change, settings, told, lambda: given_up() or worker.is_cancelled)
