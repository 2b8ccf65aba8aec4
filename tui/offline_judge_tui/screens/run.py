"""One run: its samples, what goes on now, its log and its figures; live or ended, shown alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Footer, Static

from offline_judge.domain.run_rows import UNFINISHED, IndexRow, RowQuery
from offline_judge_tui.bridge import Job
from offline_judge_tui.filtering import Filtering
from offline_judge_tui.following import follow
from offline_judge_tui.keys import binding
from offline_judge_tui.run_state import RunState
from offline_judge_tui.text import line
from offline_judge_tui.widgets.panes import AboutPane, LogPane, NowPane
from offline_judge_tui.widgets.row_table import PAGE, RowTable
from offline_judge_tui.widgets.run_head import RunHead
from offline_judge_tui.widgets.sample_rows import COLUMNS, table_row
from offline_judge_tui.widgets.title_bar import TitleBar

if TYPE_CHECKING:
    from offline_judge.api import RunListing
    from offline_judge.domain.pictures import RunFigures

_ORDERS = ("taken", "id", "probability", "outcome", "seconds")
_OUTCOMES = ("", "scored", "unscored", "error", "cancelled", UNFINISHED)
_LOOK_S = 0.1
_ROWS_S = 1.0
"""Seconds between two readings of the rows while they change."""
_DRAWN = 5000
"""Samples up to which figures are drawn unasked."""
_PANES = ("now", "log", "charts", "about")


class RunScreen(Filtering):
    """A run.

    Args:
        run_id: Its id, a prefix that only it has, or `last`.
    """

    DEFAULT_CSS: ClassVar[str] = """
    RunScreen #body { height: 1fr; }
    RunScreen #side { height: 10; background: $surface; }
    RunScreen #tabs { height: 1; padding: 0 1; background: $panel; }
    RunScreen #side VerticalScroll { padding: 0 1; height: 1fr; }
    RunScreen.-wide #body { layout: horizontal; }
    RunScreen.-wide #side { width: 44%; height: 1fr; }
    RunScreen.-wide RowTable { width: 1fr; }
    """
    FILTER = "text of the sample's id or question"
    BINDINGS: ClassVar[list[BindingType]] = [
        binding("run.filter"),
        binding("run.order"),
        binding("run.outcome"),
        binding("run.disagree"),
        binding("run.pause"),
        binding("run.drain"),
        binding("run.cancel"),
        binding("run.resume"),
        *(binding(f"run.{name}", f"pane('{name}')") for name in _PANES),
        binding("run.copy"),
        binding("app.back", "leave"),
    ]

    def __init__(self, run_id: str) -> None:
        super().__init__()
        self._asked = run_id
        self._run: RunListing | None = None
        self._query = RowQuery(limit=PAGE)
        self._state = RunState()
        self._seen = (-1, -1)
        self._rows_at = 0.0
        self._charts_of = -1
        self._chose = False
        self._logged = -1

    def compose(self) -> ComposeResult:
        """Head, table and panes."""
        yield TitleBar("Runs", self._asked)
        yield RunHead(id="head")
        with Vertical(id="body"):
            yield RowTable(COLUMNS, id="samples")
            with Vertical(id="side"):
                yield Static("", id="tabs", markup=False)
                yield NowPane(id="now")
                yield LogPane(id="log")
                yield AboutPane(id="about")
        yield Footer()

    def on_mount(self) -> None:
        """Open the run once this is seen."""
        if self.query(RowTable):  # else it goes before it has come
            self.table.focus()
            self._show_pane("now")
            self.call_after_refresh(self._open)
            self.set_interval(_LOOK_S, self._look)

    @property
    def table(self) -> RowTable:
        """The table of samples."""
        return self.query_one("#samples", RowTable)

    # What is read

    def _open(self) -> None:
        asked, settings = self._asked, self.settings

        def work(job: Job) -> RunListing | None:
            from offline_judge import api

            run_id = api.run_manifest(asked, settings).run_id

            def told(done: int, of: int) -> bool:
                job.tell(partial(self._indexing, done, of))
                return not job.stopped

            if not api.index_run(run_id, settings, told):
                return None
            listing = api.run_listing(run_id, settings)
            job.tell(partial(self._state.begin_log, list(api.run_log(run_id, settings))))
            return listing

        self.have_done("opening the run", work, self._opened, self._cannot_open)

    def _indexing(self, done: int, of: int) -> None:
        share = f"{100 * done // max(1, of)} %"
        told = (
            f"making the index, {share} of {of / 1e6:,.0f} MB; Escape leaves, and it goes on later"
        )
        self.query_one("#head", Static).update(Content(told))

    def _opened(self, run: RunListing | None) -> None:
        if run is None:
            return
        first = self._run is None
        self._run = run
        self.query_one(TitleBar).show("Runs", run.id)
        self.query_one(AboutPane).show(run.manifest)
        self._show_head()
        self.table.renew(_expected(run))
        if run.status == "running":
            self._watch()
        else:
            self._state.end()
            if first and not self._chose:
                # Of a large run they take a while, and are asked for.
                drawn = run.agreement is not None and run.finished <= _DRAWN
                self._show_pane("charts" if drawn else "log")

    def _cannot_open(self, error: Any) -> None:
        self.query_one(RunHead).say(str(error))
        self.told(error)

    def _watch(self) -> None:
        run_id, settings, state = self.run_id, self.settings, self._state

        def work(job: Job) -> None:
            follow(run_id, settings, state, job, lambda end: self.ends_by("watching", end))

        self.have_done("watching", work, self._ended)

    def _ended(self, _nothing: None) -> None:
        self._state.end()
        settings, run_id = self.settings, self.run_id

        def work(_job: Job) -> RunListing:
            from offline_judge import api

            return api.run_listing(run_id, settings)

        def done(run: RunListing) -> None:
            self._run = run
            self._show_head()
            self.table.renew(_expected(run))
            self.say(f"The run has ended: {run.status}.")

        self.have_done("reading the run", work, done)

    def on_row_table_wanted(self, message: RowTable.Wanted) -> None:
        """Read a page of rows."""
        first, settings = message.first, self.settings
        query, run_id = replace(self._query, offset=first), self.run_id

        def work(_job: Job) -> tuple[Sequence[IndexRow], int]:
            from offline_judge import api

            return api.run_rows(run_id, settings, query)

        def done(found: tuple[Sequence[IndexRow], int]) -> None:
            if replace(self._query, offset=first) == query:
                rows, total = found
                live = not self._state.ended
                self.table.put(first, [table_row(row, live=live) for row in rows], total)
                self._show_head()

        if self._run is not None:
            self.have_done(f"rows from {first:,}", work, done)

    # What is shown

    @property
    def run_id(self) -> str:
        """The whole id, once the run is open."""
        return self._run.id if self._run is not None else self._asked

    def _look(self) -> None:
        """Show what has changed since the last look; nothing, where nothing has."""
        state = self._state
        version, rows = state.version, state.rows
        if version != self._seen[0]:
            self._show_head()
            if self._shown("now"):
                self.query_one(NowPane).show(state)
            if self._shown("log") and state.logged != self._logged:
                self._logged = state.logged
                self.query_one(LogPane).show(state.log)
        now = time.monotonic()
        if rows != self._seen[1] and now - self._rows_at >= _ROWS_S and self._run is not None:
            self._rows_at = now
            self._seen = (version, rows)
            self.table.renew(self.table.total)
        self._seen = (version, self._seen[1])

    def _shown(self, pane: str) -> bool:
        return bool(self.query(f"#{pane}")) and bool(self.query_one(f"#{pane}").display)

    def _show_head(self) -> None:
        if self._run is not None:
            self.query_one(RunHead).show(self._run, self._state, self._narrowed())

    def _narrowed(self) -> str:
        """How the samples shown are chosen and ordered, where not plainly."""
        query, parts = self._query, []
        if query.order != "taken" or query.reverse:
            parts.append(f"by {query.order}{' backwards' if query.reverse else ''}")
        if query.outcome:
            parts.append(f"only {query.outcome}")
        if query.disagree:
            parts.append("only disagreements")
        if query.text:
            parts.append(f"with “{line(query.text)}”")
        return f"[{', '.join(parts)}: {self.table.total:,}]" if parts else ""

    # What is done

    def action_pane(self, name: str) -> None:
        """Show one of the panes, from now on."""
        self._chose = True
        self._show_pane(name)

    def _show_pane(self, name: str) -> None:
        if name == "charts":
            self.call_later(self._charts)
        for pane in _PANES:
            for found in self.query(f"#{pane}"):
                found.display = pane == name
        tabs = [
            (f" {number} {pane} ", "bold reverse" if pane == name else "$text-muted")
            for number, pane in enumerate(_PANES, 1)
        ]
        self.query_one("#tabs", Static).update(Content.assemble(*tabs))
        self._seen, self._logged = (-1, self._seen[1]), -1

    async def _charts(self) -> None:
        from offline_judge_tui.widgets.charts import ChartsPane

        if not self.query(ChartsPane):
            await self.query_one("#side").mount(ChartsPane(id="charts"))
        pane, rows = self.query_one(ChartsPane), self._state.rows
        if self._run is None or self._charts_of == rows:
            return
        settings, run_id = self.settings, self.run_id

        def work(_job: Job) -> RunFigures:
            from offline_judge import api

            return api.run_figures(run_id, settings)

        def done(figures: RunFigures) -> None:
            self._charts_of = rows
            pane.show(figures)

        self.have_done("computing figures", work, done)

    def action_order(self) -> None:
        """Order by the next column; after the last, the same backwards."""
        place = _ORDERS.index(self._query.order) + 1
        order, reverse = _ORDERS[place % len(_ORDERS)], self._query.reverse
        if place == len(_ORDERS):
            reverse = not reverse
        self._narrow(order=order, reverse=reverse)

    def action_outcome(self) -> None:
        """Show samples of the next outcome only; after the last, all."""
        place = _OUTCOMES.index(self._query.outcome) + 1
        self._narrow(outcome=_OUTCOMES[place % len(_OUTCOMES)])

    def action_disagree(self) -> None:
        """Show samples only whose verdict is not their label, or all again."""
        self._narrow(disagree=not self._query.disagree)

    def _narrow(self, **changes: Any) -> None:
        self._query = replace(self._query, **changes)
        self.table.clear()
        self.table.renew(1)
        self._show_head()

    def filtered(self, text: str) -> None:
        """Show what fits."""
        if text != self._query.text:
            self._narrow(text=text)

    async def action_leave(self) -> None:
        """Leave the filter, or the screen; the run goes on."""
        if not await self.leave_filter():
            await self.home.action_back()

    def on_row_table_opened(self, message: RowTable.Opened) -> None:
        """Open a sample."""
        self.home.open("sample", run_id=self.run_id, sample_id=message.row.key)

    def action_copy(self) -> None:
        """Copy the run's id."""
        self.home.copies.copy(self.run_id, "run id")

    def action_pause(self) -> None:
        """Hold the run up, or let it go on."""
        progress = self._state.progress
        paused = progress is not None and progress.paused

        def work(_job: Job) -> None:
            from offline_judge import api

            (api.unpause if paused else api.pause)(self.run_id, self.settings)

        self._ask_run("unpausing" if paused else "pausing", work)

    def action_drain(self) -> None:
        """Let the run finish the samples in flight and end."""
        self._stop(drain=True)

    def action_cancel(self) -> None:
        """Ask whether the samples in flight shall be given up, and do it."""
        from offline_judge_tui.screens.confirm import Confirm

        told = "Give up the samples in flight, and end the run? What is finished is kept, and the "
        told += "run can be resumed."
        if self._is_live():
            self.app.push_screen(
                Confirm(told, "Cancel the run"),
                lambda yes: self._stop(drain=False) if yes else None,
            )

    def _stop(self, *, drain: bool) -> None:
        def work(_job: Job) -> None:
            from offline_judge import api

            api.cancel(self.run_id, self.settings, drain=drain)

        self._ask_run("draining" if drain else "cancelling", work)

    def _ask_run(self, name: str, work: Callable[[Job], None]) -> None:
        if self._is_live():
            self.have_done(name, work)

    def _is_live(self) -> bool:
        live = self._run is not None and self._run.status == "running" and not self._state.ended
        if not live:
            self.warn("No process works on this run.")
        return live

    def action_resume(self) -> None:
        """Go on with the run, in a process of its own."""
        if self._run is None or (self._run.status == "running" and not self._state.ended):
            self.warn("The run goes on already.")
            return
        from offline_judge_tui.screens.resuming import resume

        def again() -> None:
            self._state = RunState()
            self._seen = (-1, -1)
            self._open()
            self._show_pane("now")

        resume(self, self.run_id, again)


def _expected(run: RunListing) -> int:
    """Rows there may be; what there are is told by the first page."""
    return max(1, sum(run.outcomes.values()))
