"""The reliability plot: how often what the judge calls probable is correct."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from offline_judge.domain.scores import Reliability
from offline_judge.errors import MissingDependencyError, StorageError, UsageError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FORMATS = (".png", ".svg")
# Told apart by shape and lightness too, for print and for the colour-blind.
_STYLES = (
    {"color": "#b85c00", "marker": "o", "linestyle": "--"},
    {"color": "#1f5fa8", "marker": "s", "linestyle": "-"},
)


def check_plot(path: Path) -> None:
    """Refuse a plot that could not be drawn, before anything is fitted.

    Raises:
        UsageError: neither .png nor .svg.
        MissingDependencyError: matplotlib is not installed.
    """
    if path.suffix.lower() not in FORMATS:
        raise UsageError(
            f"Cannot draw `{path.name}`", remedy=f"Name the plot {' or '.join(FORMATS)}."
        )
    try:
        import matplotlib  # noqa: F401 - whether it is there
    except ModuleNotFoundError:
        raise MissingDependencyError(
            "Plots need matplotlib, which is not installed.",
            remedy='pip install "offline-llm-judge[plots]"',
        ) from None


def draw_reliability(
    path: Path, before: Reliability, after: Reliability | None, title: str
) -> None:
    """Draw the share people call correct against the mean probability of each bin.

    Below it, how many samples each bin holds, since a bin of three samples says little.

    Raises:
        UsageError: neither .png nor .svg.
        MissingDependencyError: matplotlib is not installed.
        StorageError: the file cannot be written.
    """
    check_plot(path)
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    # Without pyplot: no window system, no state shared with the caller's own plots.
    figure = Figure(figsize=(5.2, 6.6), layout="constrained")
    FigureCanvasAgg(figure)
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(4, 1))
    upper.plot((0, 1), (0, 1), color="0.75", linewidth=1, label="as often as said")
    told = [("judge's own", before)] + ([("calibrated", after)] if after else [])
    for place, (name, one) in enumerate(told):
        _curve(upper, one, name, _STYLES[place])
        _counts(lower, one, place, len(told))
    upper.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    upper.set_ylabel("share that people call correct")
    # Outside: the curves may run through any corner.
    figure.legend(loc="outside upper left", frameon=False, title=title, alignment="left")
    lower.set_xlabel("probability of “correct”")
    lower.set_ylabel("samples")
    # The same numbers give the same bytes: no date, no random ids.
    metadata = {"Date": None} if path.suffix.lower() == ".svg" else {"Software": None}
    try:
        with matplotlib.rc_context({"svg.hashsalt": "offline-judge"}):
            figure.savefig(path, dpi=150, metadata=metadata)
    except OSError as error:
        raise StorageError(f"Cannot write: {error.strerror}", where=str(path)) from error


def _curve(axes: Axes, one: Reliability, name: str, style: dict[str, Any]) -> None:
    error = "" if one.error is None else f", error {one.error:.3f}"
    x = [found.mean_probability for found in one.bins]
    y = [found.share_correct for found in one.bins]
    axes.plot(x, y, color=style["color"], linestyle=style["linestyle"], linewidth=0.8, alpha=0.6)
    # By area, so that a bin of one sample does not look like one of a hundred.
    largest = max((found.n for found in one.bins), default=1)
    sizes = [8 + 90 * found.n / largest for found in one.bins]
    axes.scatter(x, y, s=sizes, color=style["color"], marker=style["marker"], zorder=3)
    axes.plot([], [], label=f"{name}{error}", markersize=6, linewidth=0.8, **style)


def _counts(axes: Axes, one: Reliability, place: int, several: int) -> None:
    for found in one.bins:
        width = (found.high - found.low) * 0.8 / several
        left = found.low + (found.high - found.low) * 0.1 + place * width
        axes.bar(left, found.n, width=width, align="edge", color=_STYLES[place]["color"])
