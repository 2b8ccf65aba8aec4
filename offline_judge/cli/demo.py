"""`demo`: the twelve shipped samples, judged with and without search, side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from offline_judge.cli import output
from offline_judge.cli.numbers import count, duration
from offline_judge.cli.rows import JudgedRow, outcome, truth
from offline_judge.cli.session import Session, judge_options, output_options
from offline_judge.cli.visible import shorten

if TYPE_CHECKING:
    from offline_judge.api import DemoRow, DemoView
    from offline_judge.domain.run import RunSummary

CELL = 44
SMALL_JUDGE = "qwen2.5-coder-0.5b-instruct"


@click.command()
@click.option("--small", is_flag=True, help=f"Take the smaller judge, {SMALL_JUDGE}.")
@judge_options
@output_options
@click.pass_obj
def demo(session: Session, small: bool) -> None:
    """Judge the twelve shipped samples with `direct` and with `sage`, and compare.

    A second call shows the same runs again and judges nothing twice.
    """
    from offline_judge import api
    from offline_judge.cli.display import Display

    if small and "judge" in session.flags:
        raise click.UsageError("--small names a judge; leave --judge out.")
    if small:
        session.flags["judge"] = SMALL_JUDGE
    with Display(session.diagnostics) as display:
        view = api.demo(session.settings(), display)
    if session.json:
        output.document({"rows": view.rows, "runs": _runs(view)})
        return
    print_table(view)
    for run in view.runs:
        output.text(f"{run.manifest.method:<8}{_result(run.summary)}")
    _hints(session, view)


def print_table(view: DemoView) -> None:
    """Write the samples with the verdicts of all methods, one row a sample."""
    methods = [run.manifest.method for run in view.runs]
    columns = [output.Column(name) for name in ("question", "response", "label", *methods)]
    output.table([*columns, output.Column("searches", right=True)], map(_cells, view.rows))


def _cells(row: DemoRow) -> list[str]:
    verdicts = [_verdict(judged) for judged in row.judged.values()]
    searches = sum(judged.searches for judged in row.judged.values() if judged is not None)
    question, response = shorten(row.question, CELL), shorten(row.response, CELL)
    return [question, response, truth(row.label), *verdicts, str(searches)]


def _verdict(judged: JudgedRow | None) -> str:
    if judged is None:
        return "-"
    if judged.verdict is None or judged.probability is None:
        return outcome(judged)
    return f"{truth(judged.verdict):<5} {judged.probability:.2f}"


def _result(summary: RunSummary) -> str:
    scored = summary.outcomes.get("scored", 0)
    parts = [f"{scored} of {count(summary.planned, 'sample')} scored"]
    if summary.agreement is not None:
        kappa = summary.agreement.kappa
        shown = "undefined" if kappa is None else f"{kappa:.2f}"
        parts.append(f"accuracy {summary.agreement.accuracy:.2f}, kappa {shown}")
        parts.append(f"n = {summary.agreement.n}")
    return ", ".join([*parts, f"{duration(summary.seconds)}"])


def _runs(view: DemoView) -> dict[str, Any]:
    return {
        run.manifest.method: {"run": run.manifest.run_id, "summary": run.summary}
        for run in view.runs
    }


def _hints(session: Session, view: DemoView) -> None:
    diagnostics = session.diagnostics
    diagnostics.hint("The number behind a verdict is the judge's probability of `true`.")
    if view.runs and view.rows:
        run_id = view.runs[-1].manifest.run_id
        diagnostics.hint(f"How one was judged:  offline-judge show {run_id} {view.rows[0].id}")
    diagnostics.hint('Ask about your own:  offline-judge ask "QUESTION" "RESPONSE"')
    diagnostics.hint("Judge a whole file:  offline-judge run sage --data FILE")
