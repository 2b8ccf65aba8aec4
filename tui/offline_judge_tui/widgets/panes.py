"""The panes below or beside a run's samples: what goes on now, the log, and what the run is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from offline_judge.domain.numbers import duration
from offline_judge_tui.run_state import RunState, Writing
from offline_judge_tui.text import line, named, plain

if TYPE_CHECKING:
    from offline_judge.domain.progress import SlotState
    from offline_judge.domain.run import RunManifest
    from offline_judge.domain.run_rows import LogLine

_TAIL = 480
_KINDS = {"run": "$primary", "engine": "$secondary", "warning": "$warning", "failure": "$error"}


class NowPane(VerticalScroll):
    """What each sample in flight does now, token by token."""

    def compose(self) -> Iterable[Static]:
        """One text."""
        yield Static("", id="now-text", markup=False)

    def show(self, state: RunState) -> None:
        """Show where things stand."""
        text = self.query_one("#now-text", Static)
        text.update(Content("\n").join(_now(state)))


def _now(state: RunState) -> Iterable[Content]:
    progress, slots, writing = state.progress, state.slots, state.writing
    if state.ended:
        yield Content("The run does not go on at the moment.").stylize("$text-muted")
        return
    phase, detail = state.phase
    # It is over once a sample is judged, and nothing says so.
    if phase and not (phase == "preflight" and progress is not None and progress.in_flight):
        yield named("phase", f"{phase}: {detail}" if detail else phase)
    if preflight := state.preflight:
        about = f", about {duration(preflight.seconds)}" if preflight.seconds is not None else ""
        yield named("planned", f"{preflight.planned:,} samples{about}")
        for sample in preflight.too_long[:3]:
            yield plain(f"{line(sample)} is too long for the window", "$warning")
    if slots is not None:
        yield named("slots", f"{len(slots.busy)} of {slots.total} busy")
    busy = {slot.sample_id: slot for slot in slots.busy} if slots is not None else {}
    for sample, doing in (progress.in_flight if progress else {}).items():
        yield from _sample(sample, doing, busy.get(sample), writing)


def _sample(
    sample: str, doing: str, slot: SlotState | None, writing: Mapping[str, Writing]
) -> Iterable[Content]:
    yield Content("")
    told = doing if slot is None else _slot(slot)
    yield Content.assemble((line(sample), "bold $accent"), "  ", plain(line(told)))
    written = writing.get(sample)
    if written is not None and written.text.strip():
        yield plain(written.text.strip()[-_TAIL:])


def _slot(slot: SlotState) -> str:
    if slot.doing == "writing":
        return f"{slot.stage}: writing, {slot.written:,} tokens"
    share = f", {100 * slot.read // slot.of} %" if slot.of else ""
    return f"{slot.stage}: reading {slot.read:,} of {slot.of:,} tokens{share}"


class LogPane(VerticalScroll):
    """Starts and ends, restarts of the engine, warnings, samples without a verdict."""

    def compose(self) -> Iterable[Static]:
        """One text."""
        yield Static("", id="log-text", markup=False)

    def show(self, lines: list[LogLine]) -> None:
        """Show the lines; the newest stays in sight where it was."""
        at_end = self.scroll_offset.y >= self.max_scroll_y - 1
        shown = [_log_line(one) for one in lines[-300:]]
        text = self.query_one("#log-text", Static)
        text.update(Content("\n").join(shown) if shown else Content("Nothing to tell yet."))
        if at_end:
            self.scroll_end(animate=False)


def _log_line(one: LogLine) -> Content:
    sample = f"{line(one.sample_id)}: " if one.sample_id else ""
    return Content.assemble(
        (one.time[11:19] + "  ", "$text-muted"),
        (f"{one.kind:<8}", _KINDS.get(one.kind, "")),
        plain(sample + " ".join(one.text.split())),
    )


class AboutPane(VerticalScroll):
    """What shapes the run's judgments."""

    def compose(self) -> Iterable[Static]:
        """One text."""
        yield Static("", id="about-text", markup=False)

    def show(self, manifest: RunManifest) -> None:
        """Show the manifest."""
        self.query_one("#about-text", Static).update(Content("\n").join(_about(manifest)))


def _about(manifest: RunManifest) -> Iterable[Content]:
    yield named("run", manifest.run_id)
    yield named("begun", manifest.created)
    yield named("method", manifest.method)
    for name, value in manifest.options.items():
        yield named(f"  {name}", str(value))
    yield named("data", manifest.data.path)
    yield named("rows", f"{manifest.data.rows:,}, {manifest.data.skipped:,} of them skipped")
    yield named("judge", f"{manifest.judge.name} {manifest.judge.sha256[:12]}")
    yield named("engine", f"{manifest.judge.engine} {manifest.judge.engine_version}")
    if manifest.candidate is not None:
        yield named("candidate", manifest.candidate.name)
    for name, value in manifest.search.items():
        yield named(f"search {name}", str(value))
    if manifest.parent is not None:
        parent = manifest.parent
        yield named("derived from", f"{parent.run_id}, sample {parent.sample_id}")
    leaves = ", ".join(manifest.leaves_machine) or "nothing"
    yield named("leaves this machine", leaves)
    for name, setting in manifest.settings.items():
        if setting.origin != "default":
            yield named(f"setting {name}", f"{setting.value}  ({setting.origin})")
    for name, version in manifest.versions.items():
        yield named(f"version {name}", version)
