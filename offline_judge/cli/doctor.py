"""`doctor`: what a run may need, and what to do about what is lacking."""

from __future__ import annotations

from itertools import groupby

import click

from offline_judge.cli import output
from offline_judge.cli.diagnostics import FAILED
from offline_judge.cli.session import (
    Decorated,
    Session,
    engine_options,
    judge_option,
    output_options,
)

_MARKS = {"ok": "+", "note": "~", "problem": "!"}


def _engine(command: Decorated) -> Decorated:
    for option in reversed((judge_option, *engine_options)):
        command = option(command)
    return command


@click.command()
@click.option("--probe", is_flag=True, help="Start the judge and try out all it promises.")
@_engine
@output_options
@click.pass_obj
def doctor(session: Session, probe: bool) -> None:
    """Look at machine, GPUs, packages, weights, engines, corpora, folders.

    Ends with 1 where something will not work; each problem names its remedy.
    """
    from offline_judge import api

    diagnostics = session.diagnostics

    def tell(phase: str, detail: str = "") -> None:
        diagnostics.note(f"{phase}: {detail}" if detail else phase)

    found = api.doctor(session.settings(), probe=probe, listener=tell)
    problems = sum(one.state == "problem" for one in found)
    if session.json:
        output.document({"problems": problems, "findings": found})
    else:
        for area, group in groupby(found, key=lambda one: one.area):
            output.text(area)
            for one in group:
                output.text(f"  {_MARKS[one.state]} {one.name}: {one.text}")
                if one.remedy:
                    output.text(f"      {one.remedy}")
    if problems:
        click.get_current_context().exit(FAILED)
