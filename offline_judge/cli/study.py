"""`study`: many conditions compared on one labelled file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from offline_judge.cli import output
from offline_judge.cli.diagnostics import INTERRUPTED
from offline_judge.cli.lazy import LazyGroup
from offline_judge.cli.run import limit_option, minutes_option, read_mapping, read_options
from offline_judge.cli.session import Session, judge_options, output_options
from offline_judge.errors import UsageError

if TYPE_CHECKING:
    from offline_judge.api import StudyView

_PATH = click.Path(path_type=Path)
_LIVE = {
    "data": "--data",
    "labels": "--labels",
    "format": "--format",
    "responses": "--responses",
    "mapping": "--map",
    "skip_bad": "--skip-bad",
    "conditions": "--conditions",
    "more": "--with",
    "options": "--option",
    "limit": "--limit",
    "minutes": "--minutes",
    "gold": "--gold",
}
"""What only a study that judges takes."""


@click.group(cls=LazyGroup)
def study() -> None:
    """Compare ways of judging with what people said."""


def _names(_ctx: click.Context, _param: click.Parameter, value: str | None) -> tuple[str, ...]:
    return tuple(filter(None, (name.strip() for name in (value or "").split(","))))


@study.command("sage")
@click.option("--data", type=_PATH, metavar="FILE", help="Labelled samples.")
@click.option("--labels", type=_PATH, metavar="FILE", help="Labels in place of the data file's.")
@click.option("--format", default="", metavar="NAME", help="Form of a public set.")
@click.option("--responses", type=_PATH, metavar="FILE", help="Responses, joined by id.")
@click.option("--map", "mapping", multiple=True, metavar="COLUMN=FIELD", help="Name a column.")
@click.option("--skip-bad", is_flag=True, help="Leave rows out that cannot be read.")
@click.option("--conditions", callback=_names, metavar="A,B,...", help="Of the shipped ones.")
@click.option(
    "--with",
    "more",
    multiple=True,
    metavar="NAME=METHOD:KEY=VALUE,...",
    help="A condition of your own.",
)
@click.option("-o", "--option", "options", multiple=True, metavar="KEY=VALUE", help="Of all sage.")
@limit_option
@minutes_option
@click.option(
    "--threshold-from",
    default="",
    metavar="STUDY[:N]",
    help="Fit thresholds on N (60) samples of another study's scores.",
)
@click.option("--gold", type=_PATH, metavar="FILE", help="Question to passage with the answer.")
@click.option("--from-scores", type=_PATH, metavar="STUDY", help="Report again; judge nothing.")
@click.option("--out", type=_PATH, metavar="DIR", help="Write report, figures, scores, plot.")
@judge_options
@output_options
@click.pass_obj
def sage(session: Session, /, **request: Any) -> None:
    """Compare direct, reference, lexical, sage and its ablations on one labelled file.

    Each condition is a run. The same command goes on where an earlier one stopped; whenever it
    stops, all conditions have the same questions judged.
    """
    from offline_judge import api
    from offline_judge.cli.display import Display

    from_scores = request.pop("from_scores")
    if from_scores is not None:
        given = [option for name, option in _LIVE.items() if request[name]]
        if given:
            raise UsageError(f"--from-scores judges nothing and takes no {given[0]}.")
        again = {name: request[name] for name in ("threshold_from", "out")}
        view = api.study_report(from_scores, **again)
        _report(session, view)
        _end(view)
        return
    if request["data"] is None:
        raise click.UsageError("Missing option '--data' (or '--from-scores').")
    request["mapping"] = read_mapping(request["mapping"])
    request["options"] = read_options(request["options"])
    with Display(session.diagnostics) as display:
        view = api.study_sage(api.StudyRequest(**request), session.settings(), display)
    _report(session, view)
    if view.report.about.status == "stopped":
        session.diagnostics.hint("The same command goes on.")
    _end(view)


def _end(view: StudyView) -> None:
    """End with an error where the report could not be written, else by how the study ended."""
    if view.failure is not None:
        raise view.failure
    if view.report.about.status == "stopped":
        click.get_current_context().exit(INTERRUPTED)


def _report(session: Session, view: StudyView) -> None:
    if session.json:
        output.document({"report": view.report, "files": view.files})
    else:
        output.text(view.markdown.rstrip())
    if view.problem:
        session.diagnostics.warn(view.problem)
    if view.files:
        session.diagnostics.note(f"Written to {view.files[0].parent}")
