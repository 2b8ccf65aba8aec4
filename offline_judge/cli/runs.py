"""`runs`: what there is, what came out of one, its rows for other programs, and deleting it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from offline_judge.cli import output
from offline_judge.cli.derived import comparison, origin
from offline_judge.cli.lazy import LazyGroup
from offline_judge.cli.rows import JudgedRow, outcome, truth
from offline_judge.cli.session import Session, output_options
from offline_judge.domain.visible import shorten, visible
from offline_judge.outfiles import write_output

if TYPE_CHECKING:
    from offline_judge.api import RunListing

SHOWN_ROWS = 20


@click.group(cls=LazyGroup)
def runs() -> None:
    """List, show, export and delete runs."""


@runs.command("list")
@output_options
@click.pass_obj
def list_runs(session: Session) -> None:
    """List all runs, the newest first."""
    from offline_judge import api

    entries = [_entry(listing) for listing in api.list_runs(session.settings())]
    if session.json:
        output.rows(entries)
        return
    if not entries:
        session.diagnostics.note("There are no runs yet. Try: offline-judge demo")
        return
    names = ("id", "started", "method", "judge", "status")
    columns = [output.Column(name) for name in names] + [output.Column("done", right=True)]
    derived = any(entry["parent"] for entry in entries)
    if derived:
        columns.append(output.Column("derived from"))
    output.table(columns, (_listed(entry, names, derived=derived) for entry in entries))


def _listed(entry: Mapping[str, Any], names: Iterable[str], *, derived: bool) -> list[str]:
    cells = [*(str(entry[name]) for name in names), f"{entry['finished']}/{entry['planned']}"]
    parent = entry["parent"]
    return [*cells, origin(parent) if parent else ""] if derived else cells


def _entry(listing: RunListing) -> dict[str, Any]:
    names = ("id", "started", "method", "judge", "status", "planned", "finished", "unscored")
    values = {name: getattr(listing, name) for name in names}
    return {**values, "agreement": listing.agreement, "parent": listing.parent}


@runs.command("show")
@click.argument("run_id", metavar="RUN")
@click.option("--costs", is_flag=True, help="Show where its time goes instead, by stage.")
@output_options
@click.pass_obj
def show_run(session: Session, run_id: str, costs: bool) -> None:
    """Show what came out of RUN, and its first rows."""
    from offline_judge import api
    from offline_judge.cli.summary import manifest_pairs, summary_pairs

    if costs:
        _show_costs(session, run_id)
        return
    view = api.load_run(run_id, session.settings())
    if session.json:
        document = {"manifest": view.manifest, "summary": view.summary, "rows": view.rows}
        output.document({**document, "before": view.before})
        return
    pairs = [*manifest_pairs(view.manifest), *summary_pairs(view.summary)]
    if view.manifest.parent is not None:
        pairs += comparison(view.before, view.rows[0] if view.rows else None)
    output.pairs(pairs)
    if not view.rows:
        return
    output.text()
    calibrated = view.manifest.calibration is not None
    names = ("sample", "label", "verdict", *(("calibrated",) if calibrated else ()))
    columns = [output.Column(name) for name in names]
    columns += [output.Column("probability", right=True), output.Column("outcome")]
    columns.append(output.Column("question"))
    shown = (_cells(row, calibrated=calibrated) for row in view.rows[:SHOWN_ROWS])
    output.table(columns, shown)
    more = len(view.rows) - SHOWN_ROWS
    if more > 0:
        session.diagnostics.hint(
            f"{more:,} more rows: offline-judge runs export {view.manifest.run_id} --format csv"
        )


def _show_costs(session: Session, run_id: str) -> None:
    from offline_judge import api
    from offline_judge.cli.costs import costs_document, show_costs

    found = api.run_costs(run_id, session.settings())
    if session.json:
        output.document(costs_document(run_id, found))
    else:
        show_costs(found)


def _cells(row: JudgedRow, *, calibrated: bool) -> list[str]:
    probability = "-" if row.probability is None else f"{row.probability:.2f}"
    verdicts = [row.verdict, *((row.calibrated_verdict,) if calibrated else ())]
    read = [truth(verdict) for verdict in (row.label, *verdicts)]
    return [row.id, *read, probability, outcome(row), shorten(row.question, 48)]


@runs.command("export")
@click.argument("run_id", metavar="RUN")
@click.option("--format", "form", type=click.Choice(["jsonl", "csv"]), help="Default: jsonl.")
@click.option("--out", type=click.Path(path_type=Path), metavar="FILE", help="Not to stdout.")
@output_options
@click.pass_obj
def export(session: Session, run_id: str, form: str | None, out: Path | None) -> None:
    """Write RUN's rows as JSON Lines or CSV, one a sample.

    JSON Lines has every text as it is. CSV is for spreadsheets: a text that would be computed
    there (it begins with = + - @) gets an apostrophe in front, and FILE is marked as UTF-8.
    """
    from offline_judge import api
    from offline_judge.cli.sheets import Sheet

    if session.json and form == "csv" and out is None:
        raise click.UsageError("--json and --format csv both want stdout; add --out FILE.")
    rows = api.export_rows(run_id, session.settings())
    sheet = Sheet()
    lines = (output.json_line(row) for row in rows)
    pieces = sheet.pieces(rows, marked=out is not None) if form == "csv" else lines
    if out is None:
        for piece in pieces:
            output.write(visible(piece, lines=True) if output.is_terminal() else piece)
    else:
        write_output(out, pieces)
        if session.json:
            output.document({"run": run_id, "file": out})
        session.diagnostics.note(f"Rows written to {out}")
    if sheet.defused:
        session.diagnostics.note(
            f"{sheet.defused:,} texts that a spreadsheet would compute begin with an apostrophe; "
            "--format jsonl has them as they are."
        )


@runs.command("rm")
@click.argument("run_ids", metavar="RUN...", nargs=-1, required=True)
@click.option("--yes", is_flag=True, help="Do not ask.")
@output_options
@click.pass_obj
def remove(session: Session, run_ids: tuple[str, ...], yes: bool) -> None:
    """Delete runs for good; takes whole ids only."""
    from offline_judge import api

    settings = session.settings()
    for run_id in run_ids:
        if not yes:
            click.confirm(
                f"Delete run {run_id} and all that was recorded in it?", abort=True, err=True
            )
        api.remove_run(run_id, settings)
        if session.json:
            output.rows([{"run": run_id, "removed": True}])
        session.diagnostics.note(f"Run {run_id} is deleted.")
