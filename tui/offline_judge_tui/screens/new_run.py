"""A new run: data, method, judge and search chosen, looked at and checked, then started apart."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Footer, Static

from offline_judge.domain.numbers import size
from offline_judge.errors import InterruptedRunError, OfflineJudgeError
from offline_judge_tui.bridge import Desk, Job
from offline_judge_tui.keys import binding
from offline_judge_tui.text import line, plain, truth
from offline_judge_tui.widgets.run_form import Choice, RunForm
from offline_judge_tui.widgets.title_bar import TitleBar

if TYPE_CHECKING:
    from offline_judge.api import RunChoices, RunRequest
    from offline_judge.domain.previews import Preview
    from offline_judge.settings import Settings

_PAUSE_S = 0.3
"""Seconds that somebody who types is left alone before the file is read."""
_SHOWN_ROWS, _SHOWN_PROBLEMS = 8, 6
_CELL = 120


@dataclass(frozen=True)
class _Found:
    """What a choice comes to."""

    command: str
    preview: Preview | None
    problems: tuple[str, ...]
    fit: str


class NewRunScreen(Desk):
    """The form, what the file looks like, and the command that does the same.

    Args:
        data: A data file to begin with.
    """

    DEFAULT_CSS: ClassVar[str] = """
    NewRunScreen #body { height: 1fr; }
    NewRunScreen RunForm { height: 2fr; }
    NewRunScreen #look { height: 1fr; padding: 0 1; background: $surface; }
    NewRunScreen #command { height: auto; max-height: 3; padding: 0 1; background: $panel; }
    NewRunScreen.-wide #body { layout: horizontal; }
    NewRunScreen.-wide RunForm { width: 54%; height: 1fr; }
    NewRunScreen.-wide #look { width: 1fr; height: 1fr; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        binding("new_run.start"),
        binding("new_run.preview"),
        binding("new_run.pull"),
        binding("new_run.copy"),
        binding("app.back", "leave"),
    ]

    def __init__(self, data: str = "") -> None:
        super().__init__()
        self._data = data
        self._found: _Found | None = None
        self._timer: Any = None
        self._busy = ""
        self._read: tuple[tuple[object, ...], Preview] | None = None

    def compose(self) -> ComposeResult:
        """The form, the file, the command."""
        yield TitleBar("New run")
        with Vertical(id="body"):
            yield RunForm(self._data, self.settings.judge, self.settings.search)
            with VerticalScroll(id="look"):
                yield Static("", id="problems", markup=False)
                yield Static("Name a data file to see its rows.", id="rows", markup=False)
        yield Static("", id="command", markup=False)
        yield Footer()

    def on_mount(self) -> None:
        """Learn what can be chosen."""
        self.call_after_refresh(self._begin)

    def _begin(self) -> None:
        # Somebody quick may have left again, and then there is nothing to begin with.
        for field in self.query("#data"):
            field.focus()
            self._offer()

    @property
    def form(self) -> RunForm:
        """The form."""
        return self.query_one(RunForm)

    def _offer(self) -> None:
        settings = self.settings

        def work(_job: Job) -> RunChoices:
            from offline_judge import api

            return api.run_choices(settings)

        self.have_done("reading what there is", work, self.form.offer)

    def on_run_form_changed(self) -> None:
        """Look at the choice once nothing has changed for a moment."""
        if self._timer is not None:
            self._timer.stop()
        self._timer = self.set_timer(_PAUSE_S, self.action_preview)

    def action_preview(self) -> None:
        """Read the data file and check the choice."""
        choice = self.form.choice
        if self._found is None or self._found.preview is None:
            self.query_one("#rows", Static).update("reading …" if choice.data.strip() else "")
        self.have_done("checking", partial(self._look, choice, self.settings), self._show)

    def _show(self, found: _Found) -> None:
        self._found = found
        self.query_one("#command", Static).update(plain(found.command))
        self.form.show_fit(found.fit)
        if found.preview is not None:
            self.form.show_columns(found.preview.columns)
            rows = Content("\n").join(_rows(found.preview))
            self.query_one("#rows", Static).update(rows)
        self._tell_problems()

    def _tell_problems(self) -> None:
        problems = self._found.problems if self._found is not None else ()
        parts = [Content(self._busy).stylize("bold $accent")] if self._busy else []
        parts += [plain(f"! {one}", "$error") for one in problems]
        if not problems and not self._busy:
            key = self.app.get_key_display(binding("new_run.start"))
            parts.append(Content(f"Nothing is wrong. {key} starts the run.").stylize("$success"))
        self.query_one("#problems", Static).update(Content("\n").join(parts))

    def action_start(self) -> None:
        """Check once more, and start the process that the command would start."""
        if self._busy:
            self.warn("Something is going on already.")
            return
        choice, settings = self.form.choice, self.settings

        def work(job: Job) -> str:
            from offline_judge import api

            found = self._look(choice, settings, job)
            job.tell(partial(self._show, found))
            if found.problems:
                return ""

            def waiting(said: str) -> bool:
                job.tell(partial(self._say_busy, f"starting: {line(said)[-100:]}"))
                return not job.stopped

            request, wanted = _request(choice, settings)
            return api.start(request, wanted, waiting).run_id

        self._say_busy("starting …")
        self.have_done("starting", work, self._started, self._not_started)

    def _started(self, run_id: str) -> None:
        self._say_busy("")
        if not run_id:
            self.warn("The run cannot begin yet; what is wrong stands beside the form.")
            return
        self.home.begun(run_id)
        self.app.pop_screen()
        self.home.open("run", run_id=run_id)

    def _not_started(self, error: OfflineJudgeError) -> None:
        self._say_busy("")
        if not isinstance(error, InterruptedRunError):
            self.told(error)

    def _say_busy(self, text: str) -> None:
        self._busy = text
        self._tell_problems()

    def action_pull(self) -> None:
        """Fetch the weights of the judge that is chosen."""
        if self._busy:
            self.warn("Something is going on already.")
            return
        name, settings = self.form.choice.judge, self.settings

        def work(job: Job) -> None:
            from offline_judge import api

            def progress(step: Any) -> None:
                if job.stopped:
                    raise InterruptedRunError(
                        "The download was ended; it goes on where it stopped."
                    )
                share = f"{100 * step.done // max(1, step.total)} %"
                told = f"{step.phase} {step.file}: {share} of {size(step.total)} {step.note}"
                job.tell(partial(self._say_busy, line(told)))

            api.models_pull(name, settings, progress)

        def done(_nothing: None) -> None:
            self._say_busy("")
            self.say(f"The weights of {name} are here.")
            self._offer()
            self.action_preview()

        self._say_busy(f"fetching {line(name)} …")
        self.have_done("pulling", work, done, self._not_started)

    def _look(self, choice: Choice, settings: Settings, _job: Job) -> _Found:
        """What the choice comes to; the data file is read where it is another one than before."""
        from offline_judge import api

        request, wanted = _request(choice, settings)
        command = shlex.join(api.command_line(request, wanted))
        unread = tuple(choice.problems())
        if not choice.data.strip():
            return _Found(command, None, unread, "")
        key = _data_key(request)
        known = self._read[1] if self._read is not None and self._read[0] == key else None
        check = api.check_run(request, wanted, known)
        self._read = key, check.preview
        problems = unread + tuple(map(_told, check.problems))
        return _Found(command, check.preview, problems, _fit(choice, wanted))

    def action_copy(self) -> None:
        """Copy the command."""
        if self._found is not None:
            self.home.copies.copy(self._found.command, "command")

    async def action_leave(self) -> None:
        """End what goes on, or leave."""
        if self._busy:
            self.end("starting")
            self.end("pulling")
            self._say_busy("")
            self.say("Ended. What was fetched is kept, and a pull goes on from there.")
            return
        await self.home.action_back()


def _request(choice: Choice, settings: Settings) -> tuple[RunRequest, Settings]:
    """What is chosen as a request, and the settings with the judge and search that are chosen."""
    from offline_judge import api
    from offline_judge.settings import load_settings

    flags = {
        name: getattr(settings, name)
        for name, origin in settings.origins.items()
        if origin == "flag"
    }
    for name, value in (("judge", choice.judge), ("search", choice.search)):
        if value and value != getattr(settings, name):
            flags[name] = value
    request = api.RunRequest(
        choice.method,
        choice.path,
        mapping=choice.mapping,
        skip_bad=choice.skip_bad,
        limit=choice.limit_wanted,
        minutes=choice.minutes_wanted,
        options=choice.options,
        format=choice.format or None,
        responses=choice.responses_path,
        candidate=choice.candidate or None,
        calibration=choice.calibration_path,
    )
    return request, load_settings(flags)


def _told(error: OfflineJudgeError) -> str:
    """An error in a line: what is wrong, where, and what can be done."""
    place = f" [{error.where}]" if error.where else ""
    return f"{error.message.rstrip('.')}{place}. {error.remedy}".strip()


def _data_key(request: RunRequest) -> tuple[object, ...]:
    """What decides what is read of the data: how, and the files as they lie there now."""
    how = (request.format, tuple(request.mapping.items()), bool(request.candidate))
    return (*how, *(_stamp(path) for path in (request.data, request.responses)))


def _stamp(path: Path | None) -> tuple[object, ...]:
    try:
        found = path.stat() if path is not None else None
    except OSError:
        found = None
    return (path, found and found.st_mtime_ns, found and found.st_size)


def _fit(choice: Choice, settings: Settings) -> str:
    """Whether the judge is here and fits the memory, in words."""
    from offline_judge import api

    stages = next((m.stages for m in api.methods_list() if m.name == choice.method), 1)
    if not stages:
        return "this method asks no judge"
    try:
        view = api.models_show(choice.judge, settings)
        found = api.models_fit(choice.judge, settings, stages * settings.lanes)
    except OfflineJudgeError:
        return ""
    least = "at least " if found.at_least else ""
    free = "" if found.free is None else f" of {size(found.free)} free"
    here = "" if view.state == "present" else "; its weights are not here yet"
    return f"{found.verdict}: takes {least}{size(found.needed)}{free}{here}"


def _rows(preview: Preview) -> Iterator[Content]:
    labelled = f", {preview.labelled:,} with a label" if preview.labelled else ", none with a label"
    if preview.refusal is None:
        yield Content.assemble((f"{preview.total:,} samples{labelled}", "bold"))
    for problem in preview.problems[:_SHOWN_PROBLEMS]:
        yield plain(f"left out: {problem}", "$warning")
    if len(preview.problems) > _SHOWN_PROBLEMS:
        yield Content(f"and {len(preview.problems) - _SHOWN_PROBLEMS:,} more rows")
    for note in preview.notes:
        yield plain(note)
    for sample in preview.samples[:_SHOWN_ROWS]:
        yield Content("")
        yield Content.assemble((line(sample.id), "bold $accent"), f"  label {truth(sample.label)}")
        yield plain(f"Q  {_short(sample.question)}")
        yield plain(f"A  {_short(sample.response)}")
    if not preview.samples:
        for row in preview.rows[:_SHOWN_ROWS]:
            yield Content("")
            for name, value in row.items():
                yield plain(f"{line(name)}: {_short(value)}")


def _short(text: str) -> str:
    shown = line(text)
    return shown if len(shown) <= _CELL else f"{shown[:_CELL]}…"
