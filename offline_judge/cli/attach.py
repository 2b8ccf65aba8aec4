"""`attach`, `pause` and `unpause`: a run of another process, watched and held up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from offline_judge.cli import output
from offline_judge.cli.diagnostics import INTERRUPTED
from offline_judge.cli.rows import outcome, truth
from offline_judge.cli.session import Session, output_options
from offline_judge.domain.numbers import share
from offline_judge.domain.visible import shorten

if TYPE_CHECKING:
    from offline_judge.cli.display import Display
    from offline_judge.domain.news import News
    from offline_judge.domain.progress import Progress

TAIL = 48
"""Characters of what the judge writes just now that stand beside its sample."""


@click.command()
@click.argument("run_id", metavar="RUN")
@output_options
@click.pass_obj
def attach(session: Session, run_id: str) -> None:
    """Watch RUN, which another process works on: samples as they end, and what goes on now.

    Ctrl-C leaves, and the run goes on. With --json, each event is a line on stdout.
    """
    from offline_judge import api
    from offline_judge.cli.display import Display

    settings = session.settings()
    watch = api.watch(run_id, settings)
    try:
        with watch, Display(session.diagnostics) as display:
            viewer = Viewer(display, json=session.json)
            for news in watch:
                viewer.show(news)
    except KeyboardInterrupt:
        session.diagnostics.note(f"Left; run {watch.run_id} goes on.")
        click.get_current_context().exit(INTERRUPTED)
    session.diagnostics.hint(f"What came of it: offline-judge runs show {watch.run_id}")


@click.command()
@click.argument("run_id", metavar="RUN")
@output_options
@click.pass_obj
def pause(session: Session, run_id: str) -> None:
    """Let RUN, which another process works on, begin nothing new; its engine stays up."""
    from offline_judge import api

    api.pause(run_id, session.settings())
    _asked(session, run_id, "pause", "It finishes what is in flight, and waits.")


@click.command()
@click.argument("run_id", metavar="RUN")
@output_options
@click.pass_obj
def unpause(session: Session, run_id: str) -> None:
    """Let RUN, which was paused, go on."""
    from offline_judge import api

    api.unpause(run_id, session.settings())
    _asked(session, run_id, "unpause", "It goes on.")


def _asked(session: Session, run_id: str, what: str, told: str) -> None:
    if session.json:
        output.document({"run": run_id, "asked": what})
    session.diagnostics.note(told)


class Viewer:
    """Shows the news of a run: ended samples on stdout, all else on the display."""

    def __init__(self, display: Display, *, json: bool) -> None:
        self._display = display
        self._json = json
        self._texts: dict[str, tuple[int, str]] = {}
        self._shown: dict[str, Callable[[Any], None]] = {
            "preflight": display.preflight,
            "event": self._event,
            "progress": self._progress,
            "delta": self._delta,
        }

    def show(self, news: News) -> None:
        """Show one piece."""
        if news.kind == "phase":
            self._display.phase(news.phase, news.detail)
        elif news.kind in self._shown:
            self._shown[news.kind](getattr(news, news.kind))

    def _event(self, event: Any) -> None:
        self._display.event(event)
        if event.event == "sample_finished":
            self._texts.pop(event.sample_id, None)
        if self._json:
            output.rows([event])
        elif event.event == "sample_finished":
            output.text(_ended(event))

    def _delta(self, delta: Any) -> None:
        call, text = self._texts.get(delta.sample_id, (delta.call, ""))
        kept = text if call == delta.call else ""
        self._texts[delta.sample_id] = delta.call, (kept + delta.text)[-4 * TAIL :]

    def _progress(self, progress: Progress) -> None:
        in_flight = {
            name: self._with_text(name, doing) for name, doing in progress.in_flight.items()
        }
        self._display.progress(replace(progress, in_flight=in_flight))

    def _with_text(self, name: str, doing: str) -> str:
        _, text = self._texts.get(name, (0, ""))
        return f"{doing} “{shorten(text[-TAIL:], TAIL)}”" if text and "writing" in doing else doing


def _ended(event: Any) -> str:
    judgment = event.judgment
    if judgment is None:
        return f"{event.sample_id}  -  -  {outcome(event)}"
    return f"{event.sample_id}  {truth(judgment.verdict)}  {share(judgment.probability)}  scored"
