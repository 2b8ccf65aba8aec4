"""Three lines that say where a run stands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from textual.content import Content
from textual.widgets import Static

from offline_judge.domain.numbers import duration
from offline_judge_tui.run_state import RunState
from offline_judge_tui.text import bar, line

if TYPE_CHECKING:
    from offline_judge.api import RunListing
    from offline_judge.domain.progress import Progress
    from offline_judge.domain.run import Agreement

_STATUS = {"running": "$success", "failed": "$error", "interrupted": "$warning"}
_BAR = 20


class RunHead(Static):
    """What, how far, how fast."""

    DEFAULT_CSS = """
    RunHead { height: 3; padding: 0 1; background: $surface; }
    """

    def __init__(self, *, id: str) -> None:
        super().__init__("opening …", id=id, markup=False)

    def say(self, text: str) -> None:
        """Say one thing, while there is nothing else to say."""
        self.update(Content(line(text)))

    def show(self, run: RunListing, state: RunState, narrowed: str) -> None:
        """Say where the run stands; `narrowed` is how the samples shown are chosen."""
        live = run.status == "running" and not state.ended
        progress = state.progress if live else None
        paused = progress is not None and progress.paused
        status = "paused" if paused else run.status
        lines = [_what(run, status)]
        if progress is not None:
            lines += _live(progress, state)
        else:
            lines += _standing(run, state.phase if live else ("", ""))
        if narrowed:
            lines[-1] = Content.assemble((narrowed, "bold"), "  ", lines[-1])
        self.update(Content("\n").join(lines))


def _what(run: RunListing, status: str) -> Content:
    data = line(run.manifest.data.path.rpartition("/")[2])
    style = f"bold {_STATUS.get(status, '$accent')}"
    return Content.assemble((status, style), f"  {run.method}, {data}, {line(run.judge)}")


def _live(progress: Progress, state: RunState) -> Iterator[Content]:
    parts = [f"{progress.unscored:,} unscored"]
    if progress.samples_per_minute:
        parts.append(f"{progress.samples_per_minute:.1f}/min")
    if progress.left_s is not None and progress.finished < progress.planned:
        parts.append(f"{duration(progress.left_s)} left")
    yield _bar(progress.finished, progress.planned).append(", ".join(parts))
    slots = state.slots
    busy = f", slots {len(slots.busy)}/{slots.total} busy" if slots else ""
    yield Content(f"{progress.tokens_per_s:.1f} tokens/s, {progress.read_anew:,} read anew{busy}")


def _standing(run: RunListing, phase: tuple[str, str]) -> Iterator[Content]:
    told = f"{run.unscored:,} unscored{_agreement(run.agreement)}"
    yield _bar(run.finished, run.planned).append(told)
    yield Content(line(" ".join(phase)))


def _agreement(found: Agreement | None) -> str:
    if found is None:
        return ""
    kappa = "undefined" if found.kappa is None else f"{found.kappa:.2f}"
    return f", kappa {kappa}, accuracy {found.accuracy:.2f} (n = {found.n:,})"


def _bar(done: int, of: int) -> Content:
    shown = bar(done / of if of else 0.0, _BAR)
    return Content.assemble((shown, "$primary"), f" {done:,}/{of:,}  ")
