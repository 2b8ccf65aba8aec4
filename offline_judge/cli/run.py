"""`run`, `resume` and `cancel`: a run from its start to its summary."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from offline_judge.cli import output
from offline_judge.cli.diagnostics import BELOW, FAILED, INTERRUPTED
from offline_judge.cli.session import Session, judge_options, output_options
from offline_judge.errors import UsageError

if TYPE_CHECKING:
    from offline_judge.api import RunView

FIELDS = ("id", "question", "response", "reference", "label")

limit_option = click.option(
    "--limit", type=click.IntRange(min=1), metavar="N", help="Stop after N samples."
)

calibration_option = click.option(
    "--calibration",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Read verdicts by it, too; made by `calibrate`.",
)

fail_under_option = click.option(
    "--fail-under",
    multiple=True,
    metavar="METRIC=X",
    help="End with 100 where kappa, accuracy, macro_f1, auroc, sensitivity, specificity or "
    "scored is less.",
)


def _finite(_ctx: click.Context, _param: click.Parameter, value: float | None) -> float | None:
    if value is not None and not (math.isfinite(value) and value > 0):
        raise click.BadParameter("must be a number of minutes above 0")
    return value


minutes_option = click.option(
    "--minutes", type=float, metavar="M", callback=_finite, help="Take no sample after M minutes."
)


def read_mapping(pairs: Sequence[str]) -> dict[str, str]:
    """Read `column=field` pairs into column to field.

    Raises:
        UsageError: no such field, a pair the wrong way round, or one name given twice.
    """
    mapping: dict[str, str] = {}
    for pair in pairs:
        column, equals, field = pair.rpartition("=")
        if not equals or not column or not field:
            raise UsageError("Not a pair", where=f"--map {pair}", remedy="--map column=field")
        if field not in FIELDS:
            raise UsageError(
                f"`{field}` is no field of a sample", where=f"--map {pair}", remedy=_advise(pair)
            )
        if column in mapping:
            raise UsageError(f"Column `{column}` is mapped twice", where=f"--map {pair}")
        if field in mapping.values():
            raise UsageError(f"Field `{field}` is mapped twice", where=f"--map {pair}")
        mapping[column] = field
    return mapping


def _advise(pair: str) -> str:
    column, _, field = pair.rpartition("=")
    if column in FIELDS:
        return f"The column comes first: --map {field}={column}"
    close = get_close_matches(field, FIELDS, n=1)
    return f"--map {column}={close[0]}" if close else f"Fields: {', '.join(FIELDS)}."


def read_options(pairs: Sequence[str]) -> dict[str, Any]:
    """Read `key=value` pairs; numbers, `true` and `false` become what they look like.

    Raises:
        UsageError: not a pair, or a key given twice.
    """
    options: dict[str, Any] = {}
    for pair in pairs:
        key, equals, raw = pair.partition("=")
        if not equals or not key:
            raise UsageError("Not a pair", where=f"-o {pair}", remedy="-o key=value")
        if key in options:
            raise UsageError(f"Option `{key}` is given twice", where=f"-o {pair}")
        options[key] = _scalar(raw)
    return options


def _scalar(raw: str) -> Any:
    try:
        value = json.loads(raw)
    except ValueError:
        return raw
    finite = not isinstance(value, float) or math.isfinite(value)
    return value if isinstance(value, (bool, int, float)) and finite else raw


@click.command()
@click.argument("method")
@click.option("--data", required=True, metavar="FILE", help="JSONL or CSV: question, response ...")
@click.option("--map", "mapping", multiple=True, metavar="COLUMN=FIELD", help="Name a column.")
@click.option(
    "--format",
    metavar="NAME",
    help="Form of a public set: ambigqa, evouna, freshqa, hotpotqa, natural-questions, nq-open, "
    "openqa-eval, triviaqa.",
)
@click.option(
    "--responses",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Responses to the questions of --data, joined by id.",
)
@click.option("--candidate", metavar="NAME", help="Model card that writes the responses first.")
@click.option("--skip-bad", is_flag=True, help="Leave rows out that cannot be read.")
@limit_option
@minutes_option
@click.option("-o", "--option", "options", multiple=True, metavar="KEY=VALUE", help="Of METHOD.")
@calibration_option
@fail_under_option
@click.option("--run-id", default="", hidden=True)
@judge_options
@output_options
@click.pass_obj
def run(session: Session, /, **request: Any) -> None:
    """Judge a data file with METHOD (sage, direct, reference, lexical).

    The first Ctrl-C finishes the samples in flight, the second gives them up; `resume` goes on.
    """
    from offline_judge import api
    from offline_judge.cli.display import Display

    request["mapping"] = read_mapping(request["mapping"])
    request["options"] = read_options(request["options"])
    request["data"] = Path(request["data"])
    with Display(session.diagnostics) as display:
        view = api.run(api.RunRequest(**request), session.settings(), display)
    report(session, view)


@click.command()
@click.argument("run_id", metavar="RUN")
@limit_option
@minutes_option
@output_options
@click.pass_obj
def resume(session: Session, run_id: str, limit: int | None, minutes: float | None) -> None:
    """Go on with RUN: judge what is not judged yet, under the settings it began with."""
    from offline_judge import api
    from offline_judge.cli.display import Display

    with Display(session.diagnostics) as display:
        view = api.resume(
            run_id, session.settings(), limit=limit, minutes=minutes, listener=display
        )
    report(session, view)


@click.command()
@click.argument("run_id", metavar="RUN")
@click.option("--drain", is_flag=True, help="Finish the samples in flight first.")
@output_options
@click.pass_obj
def cancel(session: Session, run_id: str, drain: bool) -> None:
    """Stop RUN, which another process works on."""
    from offline_judge import api

    api.cancel(run_id, session.settings(), drain=drain)
    if session.json:
        output.document({"run": run_id, "asked": "drain" if drain else "cancel"})
    session.diagnostics.note("It finishes its samples in flight." if drain else "It stops.")


def report(session: Session, view: RunView) -> None:
    """Write what came out to stdout, what to type next to stderr, and end with the right code."""
    from offline_judge.cli.summary import summary_pairs

    run_id, summary = view.manifest.run_id, view.summary
    if session.json:
        asked = {"shortfalls": view.shortfalls} if view.shortfalls else {}
        output.document({"run": run_id, "summary": summary, **asked})
    else:
        output.pairs([("run", run_id), *summary_pairs(summary)])
    diagnostics = session.diagnostics
    if view.rows:
        diagnostics.hint(f"How one was judged: offline-judge show {run_id} {view.rows[0].id}")
        diagnostics.hint(f"All rows: offline-judge runs export {run_id} --format csv")
    cancelled = summary.outcomes.get("cancelled", 0)
    if sum(summary.outcomes.values()) - cancelled < summary.planned:
        diagnostics.hint(f"To go on: offline-judge resume {run_id}")
    elif summary.status == "limit":
        diagnostics.hint(f"To judge more of it: offline-judge resume {run_id} --limit NUMBER")
    end_by_status(summary.status)
    end_by_shortfalls(session, view.shortfalls)


def end_by_shortfalls(session: Session, shortfalls: Sequence[object]) -> None:
    """Name what was not reached and end the command with its code; nothing missed goes on."""
    for missed in shortfalls:
        session.diagnostics.error(str(missed))
    if shortfalls:
        click.get_current_context().exit(BELOW)


def end_by_status(status: str) -> None:
    """End the command with the exit code that a run's status stands for; 0 goes on."""
    if status in ("drained", "cancelled", "interrupted"):
        click.get_current_context().exit(INTERRUPTED)
    if status == "failed":
        click.get_current_context().exit(FAILED)
