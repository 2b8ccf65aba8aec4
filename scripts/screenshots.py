"""Pictures of the terminal UI from real runs, for the README: SVG that fetches nothing.

    .venv/bin/python scripts/screenshots.py [RUN SAMPLE] [--out docs/pictures]

Without RUN the newest run of `sage` is shown, and the first of its samples whose verdict is right.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from offline_judge_tui.app import OfflineJudgeApp
from offline_judge_tui.widgets.row_table import RowTable
from picture import portable
from textual.pilot import Pilot

from offline_judge import api
from offline_judge.domain.run_rows import RowQuery
from offline_judge.settings import Settings, load_settings

ROOT = Path(__file__).resolve().parents[1]
SIZE = (112, 32)
PATIENCE_S = 60.0


async def until(pilot: Pilot[Any], what: Callable[[], bool]) -> None:
    """Wait for something, and then until nothing is drawn any more."""
    deadline = time.monotonic() + PATIENCE_S
    while not what():
        if time.monotonic() > deadline:
            raise TimeoutError("the screen never showed what was waited for")
        await pilot.pause(0.05)
    before = ""
    while (now := pilot.app.export_screenshot()) != before:
        before = now
        await pilot.pause(0.4)


async def draw(settings: Settings, run_id: str, sample_id: str, folder: Path) -> None:
    """Draw every screen."""
    app = OfflineJudgeApp(settings)

    def keep(name: str) -> None:
        path = folder / f"{name}.svg"
        path.write_text(portable(app.export_screenshot(title=f"offline_judge: {name}")))
        print(f"{path.relative_to(ROOT) if path.is_relative_to(ROOT) else path}")

    def rows() -> bool:
        tables = app.screen.query(RowTable)
        return bool(tables) and tables.first(RowTable).row is not None

    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, rows)
        keep("runs")
        app.open("run", run_id=run_id)
        await until(pilot, lambda: app.screen.id != "home" and rows())
        keep("run")
        app.open("sample", run_id=run_id, sample_id=sample_id)
        await until(pilot, lambda: bool(app.screen.query("#sample-tree")))
        await pilot.press("c")
        await until(pilot, lambda: True)
        keep("sample")
        await app.action_back()
        app.open("new_run", data=str(api.demo_samples().relative_to(ROOT)))
        await until(pilot, lambda: bool(app.screen.query("#option-rounds")))
        keep("new-run")


def chosen(settings: Settings, run_id: str, sample_id: str) -> tuple[str, str]:
    """The run and the sample that are shown."""
    if not run_id:
        runs = [run.id for run in api.list_runs(settings) if run.method == "sage"]
        if not runs:
            sys.exit("There is no run of `sage` yet; try: scripts/demo")
        run_id = runs[0]
    if not sample_id:
        rows, _ = api.run_rows(run_id, settings, RowQuery(limit=1000))
        right = [row for row in rows if row.verdict is not None and row.verdict == row.label]
        sample_id = (right or list(rows))[0].sample_id
    return run_id, sample_id


def main() -> int:
    """Draw, and say what was written."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("run_id", nargs="?", default="")
    parser.add_argument("sample_id", nargs="?", default="")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "pictures")
    arguments = parser.parse_args()
    os.chdir(ROOT)  # what is shown of paths says nothing of this machine
    settings = load_settings()
    run_id, sample_id = chosen(settings, arguments.run_id, arguments.sample_id)
    arguments.out.mkdir(parents=True, exist_ok=True)
    asyncio.run(draw(settings, run_id, sample_id, arguments.out))
    return 0


if __name__ == "__main__":
    sys.exit(main())
