"""The part of the sample screen that judges again and shows what that moved."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from offline_judge.domain.numbers import duration
from offline_judge.errors import UsageError
from offline_judge_tui.again import Change, Target, Variant, judge_again, variants
from offline_judge_tui.screens.judging_again import OwnPassageScreen, WithoutScreen
from offline_judge_tui.screens.sample_head import problem
from offline_judge_tui.text import of_true
from offline_judge_tui.widgets.why_pane import WhyPane, changed, moved

if TYPE_CHECKING:
    from offline_judge.errors import OfflineJudgeError
    from offline_judge_tui.bridge import Job
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
        target, settings = self._target(), self._screen.settings
        if target is not None:
            self._screen.have_done(
                "looking for derived runs",
                lambda job: variants(target, settings, lambda: job.stopped),
                self._take_all,
            )

    def ask_without(self) -> None:
        """Ask whether to judge again without the chosen piece of evidence."""
        one = self._screen.chosen
        if one is None:
            self._pane.finish("Choose a piece of evidence in the tree first.", bad=True)
        elif self._is_free():
            change = Change(without=one.passage.id)
            asked = WithoutScreen(self.names().get(one.passage.id, one.passage.id), self._cost())
            self._screen.app.push_screen(asked, lambda yes: self._judge(change) if yes else None)

    def ask_own(self, told: str = "") -> None:
        """Ask for a passage of one's own, with what is wrong with the last one."""
        if self._is_free():
            self._screen.app.push_screen(OwnPassageScreen(self._draft, told), self._take_draft)

    def stop(self) -> None:
        """Cancel the derived run."""
        if self._running is not None:
            self._given_up = True
            self._pane.begin("stopping …")

    def names(self) -> dict[str, str]:
        """Passage id to what a person knows it by."""
        reading = self._screen.reading
        found = reading.trace.evidence.values() if reading is not None else ()
        return {one.passage.id: one.known_as for one in found}

    def _judge(self, change: Change) -> None:
        target, settings = self._target(), self._screen.settings
        if target is None:
            return
        self._running, self._given_up = change, False
        self._pane.begin("starting the judge …")

        def work(job: Job) -> Variant:
            def tell(doing: str) -> None:
                job.tell(partial(self._doing, doing))

            # A job that is stopped, as when the screen goes, takes its run with it.
            return judge_again(
                target, change, settings, tell, lambda: self._given_up or job.stopped
            )

        self._screen.have_done("judging again", work, self._take_one, self._fail)

    def _take_draft(self, change: Change | None) -> None:
        if change is not None:
            self._draft = change
            self._judge(change)

    def _take_all(self, found: list[Variant]) -> None:
        self._variants = found
        self._show()

    def _take_one(self, one: Variant) -> None:
        change, self._running = self._running, None
        if change is not None and change.text:
            self._draft = Change()
        if one.target != self._target():
            self._screen.say(f"Sample {one.target.sample_id} was judged again meanwhile.")
            self._pane.finish("")
            return
        self._variants = [*(v for v in self._variants if v.run_id != one.run_id), one]
        self._told(one)
        self._show()

    def _fail(self, error: OfflineJudgeError) -> None:
        """Say why nothing came; a passage that cannot be used is asked for again."""
        change, self._running = self._running, None
        told = problem(error).plain
        self._pane.finish(told, bad=True)
        if change is not None and change.text and error.exit_code == UsageError.exit_code:
            self.ask_own(told)

    def _doing(self, doing: str) -> None:
        if self._running is not None and not self._given_up:
            self._pane.begin(doing)

    def _told(self, one: Variant) -> None:
        reading = self._screen.reading
        if reading is None:
            return
        if one.verdict is None:
            self._pane.finish(f"{changed(one, self.names())}: {one.reason or one.status}", bad=True)
        else:
            by = moved(one, reading.view.row)
            how = of_true(one.probability).removeprefix(",").strip()
            told = f"{changed(one, self.names())}: {how} ({by or 'as before'})"
            self._pane.finish(told)

    def _show(self) -> None:
        if self._screen.reading is not None:
            self._pane.show(self._screen.reading.view.row, self._variants, self.names())

    def _target(self) -> Target | None:
        reading = self._screen.reading
        return None if reading is None else Target(reading.run_id, reading.sample_id)

    def _is_free(self) -> bool:
        if self._running is not None:
            self._screen.warn("It is being judged again already.")
            return False
        return self._screen.reading is not None

    def _cost(self) -> str:
        reading = self._screen.reading
        seconds = reading.view.row.seconds if reading is not None else 0.0
        return (
            "It becomes a run of its own. The first time took "
            f"{duration(seconds)}; what stays as it was comes from the cache."
        )
