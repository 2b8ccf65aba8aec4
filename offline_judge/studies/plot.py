"""The picture of a study: kappa with its interval, by condition."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from offline_judge.domain.scores import Interval
from offline_judge.errors import MissingDependencyError
from offline_judge.studies.figures import DEFAULT, FITTED
from offline_judge.studies.report import StudyReport

FORMATS = ("png", "svg")
_MARKS = {DEFAULT: ("o", 0.12), FITTED: ("s", -0.12)}
_STYLE: Any = {
    # Ids in an SVG are random by default, and the same report should give the same file.
    "svg.hashsalt": "offline-judge",
    "svg.fonttype": "none",
}


def draw(report: StudyReport, folder: Path, name: str = "kappa") -> list[Path]:
    """Write `<name>.png` and `<name>.svg`; a condition without a kappa has a line and no mark.

    Raises:
        MissingDependencyError: matplotlib is not installed.
    """
    try:
        import matplotlib as mpl
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            f"A plot needs `{error.name}`, which is not installed.",
            remedy='pip install "offline-llm-judge[plots]"',
        ) from error
    conditions = list(dict.fromkeys(one.condition for one in report.figures))
    paths = [folder / f"{name}.{form}" for form in FORMATS]
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(7.0, 1.2 + 0.42 * len(conditions)), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.add_subplot()
        for reading in _MARKS:
            _mark(axes, report, reading, conditions)
        axes.set_yticks([-place for place in range(len(conditions))], conditions)
        axes.set_ylim(-len(conditions) + 0.5, 0.5)
        axes.axvline(0, color="0.8", linewidth=0.8, zorder=0)
        axes.set_xlabel("Cohen's kappa with people, 95 % interval over questions")
        axes.set_title(f"{report.samples} samples, {report.questions} questions", fontsize=10)
        if axes.get_legend_handles_labels()[0]:
            axes.legend(loc="best", fontsize=8)
        for path in paths:
            metadata = {"Date" if path.suffix == ".svg" else "Software": None}
            figure.savefig(path, dpi=150, metadata=metadata)
    return paths


def _mark(axes: Any, report: StudyReport, reading: str, conditions: list[str]) -> None:
    """Draw the kappas of one reading."""
    mark, shift = _MARKS[reading]
    drawn = {
        one.condition: one.figures["kappa"]
        for one in report.figures
        if one.reading == reading and one.figures["kappa"].value is not None
    }
    if not drawn:
        return
    ends = [_ends(interval) for interval in drawn.values()]
    axes.errorbar(
        [interval.value for interval in drawn.values()],
        [shift - conditions.index(condition) for condition in drawn],
        xerr=[[low for low, _ in ends], [high for _, high in ends]],
        fmt=mark,
        capsize=3,
        label=f"{reading} threshold",
    )


def _ends(interval: Interval) -> tuple[float, float]:
    """How far the interval reaches to either side of its value; 0 where it has no ends."""
    if interval.value is None or interval.low is None or interval.high is None:
        return 0.0, 0.0
    return max(0.0, interval.value - interval.low), max(0.0, interval.high - interval.value)
