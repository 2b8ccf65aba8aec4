"""`judge`: whether a judge is fit to judge."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from offline_judge.cli import output
from offline_judge.cli.diagnostics import BELOW
from offline_judge.cli.lazy import LazyGroup
from offline_judge.cli.session import Session, engine_options, output_options

if TYPE_CHECKING:
    from offline_judge.domain.fitness import Fitness, Share

_EVERY = 12


def _engine(command: click.decorators.FC) -> click.decorators.FC:
    for option in reversed(engine_options):
        command = option(command)
    return command


@click.group(cls=LazyGroup)
def judge() -> None:
    """Check whether a judge is fit to judge."""


@judge.command("check")
@click.argument("name")
@_engine
@output_options
@click.pass_obj
def check(session: Session, name: str) -> None:
    """Have NAME make 48 judgments whose answers are known; takes a few minutes.

    NAME is a model card, or a server as `run --judge` takes it. Ends with 100 where it is unfit.
    """
    from offline_judge import api

    session.flags["judge"] = name
    diagnostics = session.diagnostics

    def tell(phase: str, detail: str = "") -> None:
        diagnostics.note(f"{phase}: {detail}" if detail else phase)

    def progress(done: int, total: int) -> None:
        if done % _EVERY == 0 or done == total:
            diagnostics.note(f"{done}/{total} judgments")

    found = api.judge_check(session.settings(), listener=tell, progress=progress)
    if session.json:
        output.document({**output.plain(found), "fit": found.fit})
    else:
        output.pairs(_pairs(found))
    if not found.fit:
        click.get_current_context().exit(BELOW)


def _pairs(found: Fitness) -> list[tuple[str, str]]:
    shift = found.length_shift
    longer = ""
    if shift is not None and shift.value is not None and shift.low is not None:
        ends = f"[{shift.low:.2f}, {shift.high:.2f}]"
        longer = f"; long ones called correct {shift.value:+.2f} {ends}"
    moved = "" if found.order_shift is None else f"; probability {found.order_shift:+.2f}"
    kappa = "" if found.kappa is None else f", Cohen's kappa {found.kappa:.2f}"
    return [
        ("judge", found.judge),
        ("right", f"{_share(found.agreement)}{kappa}"),
        ("no answer", _share(found.invalid)),
        ("says correct", f"{_share(found.says_correct)}; half of them are"),
        ("label order", f"{_share(found.order_flips)} of pairs turn{moved}"),
        ("length", f"{_share(found.length_flips)} of pairs turn{longer}"),
        ("three repeats", f"{_share(found.stable)} the same at temperature .7"),
        ("tokens", f"{found.token_differences} of {found.token_calls} calls counted otherwise"),
        ("time", f"{found.seconds:.0f} s"),
        *(("ALARM", alarm) for alarm in found.alarms),
        ("advice", found.advice),
    ]


def _share(found: Share | None) -> str:
    if found is None:
        return "-"
    return f"{found.share:.2f} [{found.low:.2f}, {found.high:.2f}] (n = {found.n})"
