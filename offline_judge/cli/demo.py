"""`demo`: the twelve shipped samples, judged with and without search, side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from offline_judge.cli import output
from offline_judge.cli.rows import JudgedRow, outcome, truth
from offline_judge.cli.run import end_by_status
from offline_judge.cli.session import Session, judge_options, output_options
from offline_judge.domain.numbers import count, duration, share
from offline_judge.domain.visible import shorten

if TYPE_CHECKING:
    from offline_judge.api import RunView
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
        runs = api.demo(session.settings(), display)
    if session.json:
        output.document({"rows": [_joined(rows) for rows in _samples(runs)], "runs": _runs(runs)})
    else:
        print_table(runs)
        for run in runs:
            output.text(f"{run.manifest.method:<8}{_result(run.summary)}")
        _hints(session, runs)
    for run in runs:
        end_by_status(run.summary.status)


def print_table(runs: Sequence[RunView]) -> None:
    """Write the samples of runs over the same data, one row a sample with every run's verdict."""
    methods = [run.manifest.method for run in runs]
    columns = [output.Column(name) for name in ("question", "response", "label", *methods)]
    output.table([*columns, output.Column("searches", right=True)], map(_cells, _samples(runs)))


def _samples(runs: Sequence[RunView]) -> list[dict[str, JudgedRow | None]]:
    """For each sample, in the order of the first run that has it: method to row."""
    samples: dict[str, dict[str, JudgedRow]] = {}
    for run in runs:
        for row in run.rows:
            samples.setdefault(row.id, {})[run.manifest.method] = row
    methods = [run.manifest.method for run in runs]
    return [{method: rows.get(method) for method in methods} for rows in samples.values()]


def _joined(rows: Mapping[str, JudgedRow | None]) -> dict[str, Any]:
    first = next(row for row in rows.values() if row is not None)
    sample = {"id": first.id, "question": first.question, "response": first.response}
    return {**sample, "label": first.label, "judged": rows}


def _cells(rows: Mapping[str, JudgedRow | None]) -> list[str]:
    first = next(row for row in rows.values() if row is not None)
    sample = [shorten(first.question, CELL), shorten(first.response, CELL), truth(first.label)]
    searches = sum(row.searches for row in rows.values() if row is not None)
    return [*sample, *(_verdict(row) for row in rows.values()), str(searches)]


def _verdict(judged: JudgedRow | None) -> str:
    if judged is None:
        return "-"
    if judged.verdict is None:
        return outcome(judged)
    return f"{truth(judged.verdict):<5} {share(judged.probability)}"


def _result(summary: RunSummary) -> str:
    scored = summary.outcomes.get("scored", 0)
    parts = [f"{scored} of {count(summary.planned, 'sample')} scored"]
    if summary.agreement is not None:
        kappa = summary.agreement.kappa
        shown = "undefined" if kappa is None else f"{kappa:.2f}"
        parts.append(f"accuracy {summary.agreement.accuracy:.2f}, kappa {shown}")
        parts.append(f"n = {summary.agreement.n}")
    return ", ".join([*parts, f"{duration(summary.seconds)}"])


def _runs(runs: Sequence[RunView]) -> dict[str, Any]:
    return {
        run.manifest.method: {"run": run.manifest.run_id, "summary": run.summary} for run in runs
    }


def _hints(session: Session, runs: Sequence[RunView]) -> None:
    diagnostics = session.diagnostics
    diagnostics.hint("The number behind a verdict is the judge's probability of `true`.")
    if runs and runs[-1].rows:
        run_id = runs[-1].manifest.run_id
        diagnostics.hint(f"How one was judged:  offline-judge show {run_id} {runs[-1].rows[0].id}")
    diagnostics.hint('Ask about your own:  offline-judge ask "QUESTION" "RESPONSE"')
    diagnostics.hint("Judge a whole file:  offline-judge run sage --data FILE")
