"""What the tests of the terminal UI share: settings of a scripted judge, runs, and waiting."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from offline_judge_tui.app import OfflineJudgeApp
from offline_judge_tui.widgets.row_table import RowTable
from textual.pilot import Pilot
from textual.screen import Screen
from textual.widgets import Static

from offline_judge import api
from offline_judge.settings import Settings, load_settings

PATIENCE_S = 30.0
HOSTILE = "[b]bold[/b] \x1b[31mred\x1b[0m \x1b]8;;http://x\x07link 日本語 👩‍👩‍👧 שלום\u202e"


@dataclass
class Place:
    """A folder of one test, and settings that meet nobody's own files."""

    path: Path

    def settings(self, **flags: Any) -> Settings:
        return load_settings({"judge": "scripted", "embedder": "none", **flags})

    def script(self, **script: Any) -> str:
        """The name of a scripted judge, as `--judge` takes it."""
        path = self.path / "script.json"
        path.write_text(json.dumps(script))
        return f"scripted:{path}"

    def data(self, count: int = 6, name: str = "data.jsonl", **changes: Any) -> Path:
        path = self.path / name
        rows = [
            {
                "id": f"s{n}",
                "question": f"What is {n // 2}?",
                "response": f"It is {n}.",
                "label": n % 2 == 0,
            }
            for n in range(count)
        ]
        for row in rows:
            row.update(changes.get(str(row["id"]), {}))
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return path

    def run(self, settings: Settings, count: int = 6, method: str = "direct", **more: Any) -> str:
        """The id of a run that has been judged."""
        request = api.RunRequest(method, self.data(count), **more)
        return api.run(request, settings).manifest.run_id


def ended(run_id: str, settings: Settings) -> api.RunView:
    """A run of another process, once that has let go of it."""
    deadline = time.monotonic() + PATIENCE_S
    while api.run_holder(run_id, settings):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return api.load_run(run_id, settings)


async def until(
    pilot: Pilot[None], what: Callable[[], bool], *, patience_s: float = PATIENCE_S
) -> None:
    """Let the application work until something is so."""
    deadline = time.monotonic() + patience_s
    while not what():
        assert time.monotonic() < deadline, screen_text(pilot)
        await pilot.pause()
        await asyncio.sleep(0.01)


def app_of(pilot: Pilot[None]) -> OfflineJudgeApp:
    assert isinstance(pilot.app, OfflineJudgeApp)
    return pilot.app


def screen_text(pilot: Pilot[None]) -> str:
    """What a person sees, line by line."""
    return screen_lines(pilot.app.screen)


def screen_lines(screen: Screen[Any]) -> str:
    strips = screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip) for strip in strips)


def shown_rows(pilot: Pilot[None]) -> list[str]:
    """Keys of the rows that the table knows, in order; none of a screen that is still made."""
    tables = pilot.app.screen.query(RowTable)
    if not tables:
        return []
    table = tables.first(RowTable)
    found = (table.known(number) for number in range(table.total))
    return [row.key for row in found if row is not None]


def table_of(pilot: Pilot[None]) -> RowTable:
    return pilot.app.screen.query_one(RowTable)


def static(pilot: Pilot[None], selector: str) -> str:
    """What a widget says; nothing where the screen is still made."""
    found = pilot.app.screen.query(selector)
    return str(found.first(Static).render()) if found else ""
