"""All runs: found, opened, resumed and deleted; and what to do where there is none yet."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.widgets import Footer, Static

from offline_judge.domain.numbers import count
from offline_judge_tui.bridge import Job
from offline_judge_tui.filtering import Filtering
from offline_judge_tui.keys import binding
from offline_judge_tui.text import line
from offline_judge_tui.widgets.row_table import Column, RowTable, TableRow
from offline_judge_tui.widgets.title_bar import TitleBar

if TYPE_CHECKING:
    from offline_judge.api import RunListing

_COLUMNS = (
    Column("when", 11),
    Column("method", 9),
    Column("data", 12, grow=True),
    Column("judge", 14, drop=3),
    Column("status", 11),
    Column("done", 11, right=True),
    Column("kappa", 5, right=True),
    Column("unscored", 8, right=True, drop=2),
    Column("run", 20, drop=4),
)
_LOOK_S = 3.0
"""Seconds between two looks at runs that go on, and for new ones."""
_AT_ONCE = 25
_STYLES = {"running": "good", "failed": "bad", "interrupted": "odd", "cancelled": "dim"}


class HomeScreen(Filtering):
    """The list of runs."""

    FILTER = "method, data, judge, status"
    BINDINGS: ClassVar[list[BindingType]] = [
        binding("home.new"),
        binding("home.filter"),
        binding("home.resume"),
        binding("home.delete"),
        binding("home.reload"),
        binding("home.quit", "app.quit"),
        binding("app.back", "leave"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._runs: dict[str, RunListing] = {}
        self._filter = ""
        self._read = False

    def compose(self) -> ComposeResult:
        """A table, and a line of what it holds."""
        yield TitleBar("Runs")
        yield RowTable(_COLUMNS, id="runs")
        yield Static("reading runs …", classes="status", id="standing", markup=False)

    def on_mount(self) -> None:
        """Begin to read once this is seen."""
        if not self.query(RowTable):
            return  # it goes before it has come
        self.table.focus()
        self.call_after_refresh(self._begin)
        self.set_interval(_LOOK_S, self._look_again)

    async def _begin(self) -> None:
        """What is not needed for the first paint."""
        self.action_reload()
        await self.mount(Footer())

    def on_screen_resume(self) -> None:
        """Coming back: what went on meanwhile is seen."""
        self._look_again()

    @property
    def table(self) -> RowTable:
        """The table of runs."""
        return self.query_one("#runs", RowTable)

    def action_reload(self) -> None:
        """Read all runs again."""
        self._runs = {}
        self._read_runs(frozenset())

    def action_new(self) -> None:
        """Open the form for a new run."""
        self.home.open("new_run")

    def action_resume(self) -> None:
        """Go on with the run that the cursor is on, in a process of its own."""
        run = self._chosen()
        if run is None:
            return
        if run.status == "running":
            self.home.open("run", run_id=run.id)
            return
        from offline_judge_tui.screens.resuming import resume

        resume(self, run.id, lambda: self.home.open("run", run_id=run.id))

    def action_delete(self) -> None:
        """Ask whether the run that the cursor is on shall be deleted, and do it."""
        run = self._chosen()
        if run is None:
            return
        from offline_judge_tui.screens.confirm import Confirm

        told = (
            f"Delete run {run.id}?\n\n{run.method} on {_data(run)}, {run.finished:,} of "
            f"{run.planned:,} samples judged. What was recorded is lost for good."
        )
        self.app.push_screen(Confirm(told, "Delete"), partial(self._delete, run.id))

    def on_row_table_opened(self, message: RowTable.Opened) -> None:
        """Open a run."""
        self.home.open("run", run_id=message.row.key)

    def filtered(self, text: str) -> None:
        """Show what fits."""
        self._filter = text.casefold()
        self._show()

    async def action_leave(self) -> None:
        """Leave the filter."""
        await self.leave_filter()

    def _chosen(self) -> RunListing | None:
        row = self.table.row
        return self._runs.get(row.key) if row is not None else None

    def _look_again(self) -> None:
        """Read runs that go on, and new ones; nothing that has ended changes any more."""
        if self._read and self.is_current:
            ended = (key for key, run in self._runs.items() if run.status != "running")
            self._read_runs(frozenset(ended))

    def _read_runs(self, passed_over: frozenset[str]) -> None:
        settings = self.settings

        def work(job: Job) -> None:
            from offline_judge import api

            found: list[RunListing] = []
            for run in api.run_listings(settings, passed_over, quick=True):
                if job.stopped:
                    return
                found.append(run)
                if len(found) == _AT_ONCE or len(found) == 1:
                    job.tell(partial(self._take_in, tuple(found)))
                    found.clear()
            job.tell(partial(self._take_in, tuple(found), whole=True))

        self.have_done("reading runs", work)

    def _take_in(self, runs: Sequence[RunListing], *, whole: bool = False) -> None:
        self._read = self._read or whole
        if not runs and not whole:
            return
        self._runs |= {run.id: run for run in runs}
        self._show()

    def _show(self) -> None:
        newest_first = sorted(self._runs.values(), key=lambda run: run.id, reverse=True)
        rows = [_row(run) for run in newest_first]
        shown = [row for row in rows if self._filter in " ".join(row.cells).casefold()]
        self.table.show_rows(shown)
        live = sum(run.status == "running" for run in self._runs.values())
        whole = count(len(rows), "run")
        told = f"{len(shown):,} of {whole}" if self._filter else whole
        self.query_one("#standing", Static).update(
            Content(f"{told}, {live} running" + ("" if self._read else ", reading …"))
        )
        if self._read:
            self.call_later(self._welcome, empty=not rows)

    async def _welcome(self, *, empty: bool) -> None:
        """Show newcomers what to do, in place of an empty table."""
        shown = self.query("#welcome")
        if empty and not shown:
            from offline_judge_tui.widgets.welcome import Welcome

            await self.mount(Welcome(id="welcome"), before=self.table)
            self.table.display = False
        elif not empty and shown:
            await shown.remove()
            self.table.display = True
            self.table.focus()

    def _delete(self, run_id: str, yes: bool | None) -> None:
        if not yes:
            return
        settings = self.settings

        def work(_job: Job) -> None:
            from offline_judge import api

            api.remove_run(run_id, settings)

        def done(_nothing: None) -> None:
            self._runs.pop(run_id, None)
            self._show()
            self.say(f"Run {run_id} is deleted.")

        self.have_done(f"deleting {run_id}", work, done)


def _row(run: RunListing) -> TableRow:
    agreement = run.agreement
    kappa = agreement.kappa if agreement is not None else None
    cells = (
        run.started[5:16].replace("T", " "),
        run.method,
        _data(run),
        run.judge,
        run.status,
        f"{run.finished:,}/{run.planned:,}" if run.counted else "open it",
        "-" if kappa is None else f"{kappa:.2f}",
        f"{run.unscored:,}" if run.counted else "",
        run.id,
    )
    return TableRow(run.id, cells, _STYLES.get(run.status, ""))


def _data(run: RunListing) -> str:
    name = run.manifest.data.path.rpartition("/")[2]
    if run.parent is not None:
        return f"{run.parent.sample_id} again"
    return line(name)
