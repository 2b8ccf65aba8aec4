"""`calibrate`: fit how a judge's probability is read on what people said of a run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from offline_judge.cli import output
from offline_judge.cli.scores import (
    error,
    label_options,
    label_pairs,
    read_label_mapping,
    show_figures,
    show_reliability,
)
from offline_judge.cli.session import Session, output_options
from offline_judge.domain.numbers import count

if TYPE_CHECKING:
    from offline_judge.domain.calibration import Calibration
    from offline_judge.domain.scores import Fit

_PATH = click.Path(path_type=Path)


@click.command()
@click.argument("run_id", metavar="RUN")
@label_options
@click.option("--out", type=_PATH, required=True, metavar="FILE", help="The calibration, JSON.")
@click.option(
    "--kind", default="threshold", show_default=True, help="threshold, isotonic or platt."
)
@click.option(
    "--optimise",
    metavar="METRIC",
    help="What the threshold is best by: kappa, accuracy, macro_f1 or share.",
)
@click.option("--plot", type=_PATH, metavar="FILE", help="Reliability plot, .png or .svg.")
@click.option("--resamples", type=click.IntRange(min=1), metavar="N", help="Default: 2000.")
@output_options
@click.pass_obj
def calibrate(session: Session, /, **request: Any) -> None:
    """Fit how RUN's probabilities are read, and write it to a file for `run --calibration`.

    Figures of the calibrated reading are of questions that it was not fitted on.
    """
    from offline_judge import api

    names = ("out", "kind", "optimise", "plot")
    how = {name: request.pop(name) for name in names}
    out = how.pop("out")
    request["mapping"] = read_label_mapping(request["mapping"])
    if request["resamples"] is None:
        del request["resamples"]
    found = api.calibrate(api.LabelsRequest(**request), out, session.settings(), **how)
    if session.json:
        output.document({**found.model_dump(), "file": out, "plot": how["plot"]})
    else:
        _show(found)
    for warning in found.warnings:
        session.diagnostics.warn(warning)
    session.diagnostics.note(f"Calibration written to {out}")
    if how["plot"] is not None:
        session.diagnostics.note(f"Plot written to {how['plot']}")
    session.diagnostics.hint(f"To judge with it: offline-judge run ... --calibration {out}")


def _show(found: Fit) -> None:
    after = error(found.after)
    if found.after is None:
        after += f": {found.reason}"
    output.pairs(
        [
            *label_pairs(found.run_id, found.labels),
            ("fitted", _fitted(found.calibration)),
            ("calibration error", f"{error(found.before)} before, {after} after"),
        ]
    )
    output.text()
    show_reliability(found.before, found.after)
    output.text()
    readings = {"judge's own": found.raw}
    if found.calibrated is not None:
        readings["calibrated"] = found.calibrated
    show_figures(readings)


def _fitted(calibration: Calibration) -> str:
    reading = calibration.reading
    by = f", best by {calibration.optimised}" if calibration.optimised else ""
    shape = ""
    if reading.points:
        shape = f", {count(len(reading.points), 'point')}"
    elif reading.slope is not None and reading.intercept is not None:
        shape = f", slope {reading.slope:.3f}, intercept {reading.intercept:.3f}"
    return f"{reading.kind}{shape}, correct from {reading.threshold:.3f}{by}"
