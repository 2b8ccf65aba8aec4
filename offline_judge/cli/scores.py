"""Figures of agreement as tables and lines, each with what it leaves out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import click

from offline_judge.cli import output
from offline_judge.cli.session import Decorated
from offline_judge.domain.numbers import count
from offline_judge.errors import UsageError

if TYPE_CHECKING:
    from offline_judge.domain.scores import (
        Correction,
        Figures,
        Interval,
        LabelCounts,
        Reliability,
    )

_TITLES = {
    "accuracy": "accuracy",
    "kappa": "Cohen's kappa",
    "macro_f1": "macro-F1",
    "auroc": "AUROC",
    "sensitivity": "sensitivity",
    "specificity": "specificity",
    "share_correct": "share called correct",
    "share_people": "share people call correct",
    "share_gap": "difference of these shares",
}


def read_label_mapping(pairs: Sequence[str]) -> dict[str, str]:
    """Read `column=id` and `column=label` pairs; several columns may be labels.

    Raises:
        UsageError: not a pair, or a column twice.
    """
    mapping: dict[str, str] = {}
    for pair in pairs:
        column, equals, name = pair.rpartition("=")
        if not equals or not column or not name:
            raise UsageError("Not a pair", where=f"--map {pair}", remedy="--map column=label")
        if column in mapping:
            raise UsageError(f"Column `{column}` is mapped twice", where=f"--map {pair}")
        mapping[column] = name
    return mapping


def label_pairs(run_id: str, labels: LabelCounts) -> list[tuple[str, str]]:
    """What the figures stand on, and all that they leave out."""
    scored = [f"{labels.scored:,} scored"]
    scored += [f"{number:,} {reason}" for reason, number in labels.unscored.items()]
    left = (
        (labels.ties, "ties of annotators"),
        (labels.blank, "rows without a label"),
        (labels.unknown, "of unknown samples"),
        (labels.not_taken_up, "of samples not judged yet"),
        (labels.bad_rows, "bad rows"),
    )
    parts = [f"{number:,} {what}" for number, what in left if number]
    several = f", {labels.several:,} samples by several annotators" if labels.several else ""
    pairs = [
        ("run", run_id),
        ("labels", f"{labels.source}{several}"),
        ("samples", f"{labels.labelled:,} labelled: {', '.join(scored)}"),
    ]
    if labels.unlabelled:
        pairs.append(("without a label", count(labels.unlabelled, "sample")))
    return [*pairs, ("labels left out", ", ".join(parts))] if parts else pairs


def show_figures(readings: Mapping[str, Figures]) -> None:
    """Write a table with a line for each figure of each reading."""
    several = len(readings) > 1
    columns = [output.Column("reading")] if several else []
    columns += [output.Column("figure"), output.Column("value", right=True)]
    columns += [output.Column("95 % interval", right=True), output.Column("n", right=True)]
    columns += [output.Column("questions", right=True), output.Column("note")]
    cells = []
    for name, figures in readings.items():
        lead = [name] if several else []
        cells += [[*lead, *_cells(title, getattr(figures, key))] for key, title in _TITLES.items()]
        share, note = figures.corrected.share, _correction(figures.corrected)
        cells.append([*lead, *_cells("share corrected for errors", share, note)])
    output.table(columns, cells)
    output.text()
    said = {name: _confusion(figures) for name, figures in readings.items()}
    if several:
        output.pairs([(f"{name} said", text) for name, text in said.items()])
    else:
        output.pairs([("correct, said", text) for text in said.values()])


def show_reliability(before: Reliability, after: Reliability | None) -> None:
    """Write the bins of the judge's own and of the calibrated probability."""
    columns = [output.Column("reading"), output.Column("probability")]
    names = ("n", "mean", "people say correct")
    columns += [output.Column(name, right=True) for name in names]
    told = {"judge's own": before} | ({"calibrated": after} if after is not None else {})
    output.table(
        columns,
        (
            [
                name,
                f"{found.low:.1f} to {found.high:.1f}",
                f"{found.n:,}",
                f"{found.mean_probability:.3f}",
                f"{found.share_correct:.3f}",
            ]
            for name, one in told.items()
            for found in one.bins
        ),
    )


def error(found: Reliability | None) -> str:
    """The expected calibration error as people read it."""
    return "undefined" if found is None or found.error is None else f"{found.error:.3f}"


def _cells(title: str, found: Interval, note: str = "") -> list[str]:
    value = "undefined" if found.value is None else f"{found.value:.3f}"
    ends = "-"
    if found.low is not None and found.high is not None:
        ends = f"{found.low:.3f} to {found.high:.3f}"
    told = "; ".join(part for part in (found.reason, note) if part)
    return [title, value, ends, f"{found.n:,}", f"{found.groups:,}", told]


def _correction(found: Correction) -> str:
    if found.source == "cross-fitted":
        told = "error rates cross-fitted by question"
    else:
        rates = [found.sensitivity, found.specificity]
        shown = ["undefined" if rate is None else f"{rate:.3f}" for rate in rates]
        told = f"by {found.source}: sensitivity {shown[0]}, specificity {shown[1]}, n {found.n:,}"
    if found.clipped and found.raw is not None:
        told += f"; {found.raw:.3f} lies out of range and was cut"
    return told


def _confusion(figures: Figures) -> str:
    cells = figures.confusion
    return (
        f"{cells.true_positive:,} by both, {cells.false_positive:,} by the judge only, "
        f"{cells.false_negative:,} by people only, {cells.true_negative:,} by neither"
    )


_LABELS = (
    click.option("--labels", metavar="FILE", help="JSONL or CSV: id, label. Default: the run's."),
    click.option(
        "--map",
        "mapping",
        multiple=True,
        metavar="COLUMN=FIELD",
        help="Name a column: id or label; several labels are annotators, whose majority counts.",
    ),
    click.option("--format", metavar="NAME", help="Form of a public set, such as evouna."),
    click.option("--skip-bad", is_flag=True, help="Leave out bad rows and unknown ids."),
)


def label_options(command: Decorated) -> Decorated:
    """The options that say where labels are."""
    for option in reversed(_LABELS):
        command = option(command)
    return command
