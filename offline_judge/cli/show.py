"""`show`: the trace of one sample as readable steps."""

from __future__ import annotations

import click

from offline_judge.cli import output
from offline_judge.cli.session import Session, output_options


@click.command()
@click.argument("run_id", metavar="RUN")
@click.argument("sample_id", metavar="SAMPLE")
@click.option("--prompts", is_flag=True, help="What filled each prompt, and each raw answer.")
@output_options
@click.pass_obj
def show(session: Session, run_id: str, sample_id: str, prompts: bool) -> None:
    """Show how SAMPLE of RUN was judged: searches, notes, prompts' sizes, verdict."""
    from offline_judge import api
    from offline_judge.cli.derived import comparison, origin
    from offline_judge.cli.steps import Steps

    view = api.show(run_id, sample_id, session.settings())
    if session.json:
        document = {"row": view.row, "sample": view.sample, "events": view.events}
        output.document({**document, "parent": view.parent, "before": view.before})
        return
    if view.parent is not None:
        output.text(f"derived from run {origin(view.parent)}", "bold")
    steps = Steps(calls=True, prompts=prompts)
    for event in view.events:
        for line in steps.feed(event):
            output.text(line.text, line.style)
    if view.parent is not None:
        output.text()
        output.pairs(comparison(view.before, view.row))
    if not prompts:
        session.diagnostics.hint("With --prompts: what filled each prompt, and the raw answers.")
