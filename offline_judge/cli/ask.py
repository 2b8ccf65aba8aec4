"""`ask`: one response judged, its steps printed as they happen."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from offline_judge.cli import output
from offline_judge.cli.run import calibration_option, read_options
from offline_judge.cli.session import Session, judge_options, output_options

if TYPE_CHECKING:
    from offline_judge.cli.display import Display
    from offline_judge.cli.steps import Steps
    from offline_judge.domain.events import AnyEvent
    from offline_judge.domain.progress import Preflight, Progress


class StepListener:
    """A `RunListener` that writes a sample's steps to stdout and the rest to stderr."""

    def __init__(self, display: Display, steps: Steps | None) -> None:
        self._display = display
        self._steps = steps
        self.broken: Exception | None = None

    def phase(self, phase: str, detail: str = "") -> None:
        """Narrate."""
        self._display.phase(phase, detail)

    def preflight(self, report: Preflight) -> None:
        """Tell what cannot fit."""
        if report.too_long:
            self._display.preflight(report)

    def event(self, event: AnyEvent) -> None:
        """Write the event's lines, unless JSON is wanted."""
        if self._steps is None:
            self._display.event(event)
            return
        try:
            for line in self._steps.feed(event):
                output.text(line.text, line.style)
        except Exception as error:  # noqa: BLE001 - a listener must not raise; told after the run
            self._steps, self.broken = None, error

    def progress(self, progress: Progress) -> None:
        """One sample needs no bar."""


@click.command()
@click.argument("question")
@click.argument("response")
@click.option("--method", default="sage", show_default=True, help="How to judge.")
@click.option("-o", "--option", "options", multiple=True, metavar="KEY=VALUE", help="Of METHOD.")
@calibration_option
@judge_options
@output_options
@click.pass_obj
def ask(
    session: Session,
    question: str,
    response: str,
    method: str,
    options: tuple[str, ...],
    calibration: Path | None,
) -> None:
    """Judge whether RESPONSE answers QUESTION correctly, step by step."""
    import time

    from offline_judge import api
    from offline_judge.cli.display import Display
    from offline_judge.cli.screens import PlainScreen
    from offline_judge.cli.steps import Steps

    how = api.AskOptions(read_options(options), calibration)
    # Steps go to stdout line by line; a bar on the same terminal would fight with them.
    screen = PlainScreen(session.diagnostics, time.monotonic)
    with Display(session.diagnostics, screen=screen) as display:
        listener = StepListener(display, None if session.json else Steps())
        view = api.ask(
            question,
            response,
            method=method,
            settings=session.settings(),
            options=how,
            listener=listener,
        )
    if listener.broken is not None:
        raise listener.broken
    run_id, sample_id = view.run.manifest.run_id, view.sample.id
    if session.json:
        document = {"row": view.row, "sample": view.sample, "events": view.events}
        output.document({"run": run_id, **document})
    session.diagnostics.hint(f"With all prompts: offline-judge show {run_id} {sample_id} --prompts")
