"""Charts of a run: agreement with its interval, the reliability curve, throughput over time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static
from textual_plotext import PlotextPlot

from offline_judge.domain.numbers import duration

if TYPE_CHECKING:
    from offline_judge.domain.pictures import RunFigures
    from offline_judge.domain.scores import Interval

_WIDE = 24


class ChartsPane(VerticalScroll):
    """What people would rather look at than read; every chart says its figures too."""

    DEFAULT_CSS = """
    ChartsPane PlotextPlot { height: 13; }
    """

    def compose(self) -> Iterable[Any]:
        """Figures and two plots."""
        yield Static("computing …", id="figures", markup=False)
        for name in ("reliability", "throughput"):
            yield Static("", id=f"{name}-caption", markup=False)
            yield PlotextPlot(id=name)

    def on_mount(self) -> None:
        """Empty plots say nothing, so they are not there."""
        for name in ("reliability", "throughput"):
            self._caption(name, "")

    def show(self, figures: RunFigures) -> None:
        """Draw what there is."""
        text = [_interval("kappa", figures.kappa, -1), _interval("accuracy", figures.accuracy, 0)]
        told = f"n = {figures.kappa.n:,} samples of {figures.kappa.groups:,} questions"
        text.append(Content(f"{told}, 95 % by resampling questions"))
        error = figures.reliability.error
        if error is not None:
            told = f"calibration error {error:.2f} over {figures.reliability.n:,} labelled samples"
            text.append(Content(told))
        self.query_one("#figures", Static).update(Content("\n").join(text))
        self._reliability(figures)
        self._throughput(figures)

    def _caption(self, name: str, told: str) -> None:
        """Say what a plot shows; without a caption it is not there."""
        self.query_one(f"#{name}-caption", Static).update(Content(told))
        for widget in (f"#{name}-caption", f"#{name}"):
            self.query_one(widget).display = bool(told)

    def _reliability(self, figures: RunFigures) -> None:
        plot = self.query_one("#reliability", PlotextPlot)
        bins = figures.reliability.bins
        told = "\nHow often people say correct (up), by the judge's probability (across)"
        self._caption("reliability", told if bins else "")
        if not bins:
            return
        plt = plot.plt
        plt.clear_data()
        plt.xlim(0, 1)
        plt.ylim(0, 1)
        plt.plot([0, 1], [0, 1], marker="dot", label="as it should be")
        places = [one.mean_probability for one in bins]
        plt.plot(places, [one.share_correct for one in bins], marker="braille", label="this run")
        plt.scatter(places, [one.share_correct for one in bins], marker="o")
        plot.refresh()

    def _throughput(self, figures: RunFigures) -> None:
        plot = self.query_one("#throughput", PlotextPlot)
        found = figures.throughput
        shown = len(found.counts) > 1
        told = f"\nSamples judged in each {duration(found.stretch_s)}, by minutes"
        self._caption("throughput", told if shown else "")
        if not shown:
            return
        plt = plot.plt
        plt.clear_data()
        minutes = [place * found.stretch_s / 60 for place in range(len(found.counts))]
        plt.plot(minutes, list(found.counts), marker="braille")
        plt.ylim(0, max(found.counts))
        plot.refresh()


def _interval(name: str, found: Interval, least: int) -> Content:
    """A figure in words and on a line, its interval between brackets."""
    if found.value is None:
        return Content(f"{name}  none: {found.reason}")
    told = f"{name:<9}{found.value:5.2f}"
    if found.low is None or found.high is None:
        return Content(f"{told}  no interval: {found.reason}")
    span = 1 - least

    def place(value: float) -> int:
        return min(_WIDE - 1, max(0, round((value - least) / span * (_WIDE - 1))))

    drawn = ["·"] * _WIDE
    for at in range(place(found.low), place(found.high) + 1):
        drawn[at] = "─"
    drawn[place(found.low)], drawn[place(found.high)] = "[", "]"
    drawn[place(found.value)] = "●"
    between = f"[{found.low:.2f}, {found.high:.2f}]"
    return Content.assemble(
        told,
        f"  {between:<14}  {least:>2} ",
        ("".join(drawn), "$primary"),
        " 1",
    )
