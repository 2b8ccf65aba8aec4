"""`score`: how well a run agrees with people."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from offline_judge.cli import output
from offline_judge.cli.run import end_by_shortfalls, fail_under_option
from offline_judge.cli.scores import label_options, label_pairs, read_label_mapping, show_figures
from offline_judge.cli.session import Session, output_options

_PATH = click.Path(path_type=Path)


@click.command()
@click.argument("run_id", metavar="RUN")
@label_options
@click.option(
    "--held-out",
    type=_PATH,
    metavar="FILE",
    help="Labels of other samples, to learn the judge's error rates from.",
)
@click.option("--calibration", type=_PATH, metavar="FILE", help="Read the verdicts by it, too.")
@click.option("--resamples", type=click.IntRange(min=1), metavar="N", help="Default: 2000.")
@fail_under_option
@output_options
@click.pass_obj
def score(session: Session, /, **request: Any) -> None:
    """Compare RUN with what people said: agreement, shares, and 95 % intervals.

    Intervals resample whole questions. A figure that is undefined says why.
    """
    from offline_judge import api

    gates = api.read_gates(request.pop("fail_under"))
    held_out, calibration = request.pop("held_out"), request.pop("calibration")
    request["mapping"] = read_label_mapping(request["mapping"])
    if request["resamples"] is None:
        del request["resamples"]
    found = api.score(
        api.LabelsRequest(**request),
        session.settings(),
        held_out=held_out,
        calibration=calibration,
    )
    missed = api.score_shortfalls(gates, found)
    if session.json:
        output.document({**found.model_dump(), "shortfalls": missed})
    else:
        output.pairs(label_pairs(found.run_id, found.labels))
        output.text()
        readings = {"judge's own": found.raw}
        if found.calibrated is not None:
            readings["calibrated"] = found.calibrated
        show_figures(readings)
    for warning in found.warnings:
        session.diagnostics.warn(warning)
    end_by_shortfalls(session, missed)
