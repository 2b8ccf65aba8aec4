"""Each screen as it is drawn at two sizes, against committed pictures in `snapshots/`.

Compared is what a picture shows, with its colours. After a change that is meant, write them anew
with WRITE_SNAPSHOTS=1 in the environment, and look at them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from offline_judge_tui.app import OfflineJudgeApp
from picture import portable
from textual.pilot import Pilot
from textual.widgets import Input
from ui_parts import Place, screen_text, shown_rows, static, until
from ui_pictures import fixed_run, shown

from offline_judge import api
from offline_judge.settings import Settings

# Not a conftest.py: the type checker knows modules by their names, and there is one already.
pytest_plugins = ("ui_fixtures",)

FOLDER = Path(__file__).parent / "snapshots"
WRITES = bool(os.environ.get("WRITE_SNAPSHOTS"))
SIZES = [(80, 24), (140, 45)]
RUN = "20260101-000000-aaaa"
both_sizes = pytest.mark.parametrize("size", SIZES, ids=["80x24", "140x45"])


@pytest.fixture
def judged(place: Place) -> Settings:
    """A run of `sage` over six samples, by a judge whose every word is fixed."""
    documents = place.path / "docs.jsonl"
    passages = [
        {"id": "a", "title": "Astana", "text": "Astana is the capital of Kazakhstan since 1997."},
        {"id": "b", "title": "Almaty", "text": "Almaty was the capital of Kazakhstan before."},
        {"id": "c", "title": "Kuna", "text": "Croatia had the kuna; it has the euro since 2023."},
    ]
    documents.write_text("".join(json.dumps(row) + "\n" for row in passages))
    settings = place.settings(judge="scripted", search="corpus:facts")
    # Fences of quoted text come from it, and what a scripted judge says from the whole prompt.
    secret = settings.data_path / "secret"
    secret.write_bytes(bytes(32))
    secret.chmod(0o600)
    api.corpus_build("facts", documents, settings)
    asked = ("What is the capital of Kazakhstan?", "What is the currency of Croatia?", "日本 [b]?")
    rows = [
        {"id": f"s{n}", "question": asked[n // 2], "response": f"Answer {n}.", "label": n % 2 == 0}
        for n in range(6)
    ]
    data = place.path / "data.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    fixed_run(settings, api.RunRequest("sage", data, options={"rounds": 1}), RUN)
    return settings


def check(pilot: Pilot[None], name: str, size: tuple[int, int]) -> None:
    """Compare what is on the screen with the picture of that name, or write that."""
    path = FOLDER / f"{name}-{size[0]}x{size[1]}.svg"
    svg = portable(pilot.app.export_screenshot(title=name))
    if WRITES:
        FOLDER.mkdir(exist_ok=True)
        path.write_text(svg, "utf-8")
    assert shown(svg) == shown(path.read_text("utf-8")), f"see {path.name}; {screen_text(pilot)}"


async def settled(pilot: Pilot[None], what: Callable[[], bool]) -> None:
    """Wait for something, and then until nothing is drawn any more."""
    await until(pilot, what)
    before = ""
    while (now := screen_text(pilot)) != before:
        before = now
        await pilot.pause(0.3)


@both_sizes
async def test_welcome(place: Place, settings: Settings, size: tuple[int, int]) -> None:
    async with OfflineJudgeApp(settings).run_test(size=size) as pilot:
        await settled(pilot, lambda: "Three steps" in screen_text(pilot))
        check(pilot, "welcome", size)


@both_sizes
async def test_home(judged: Settings, size: tuple[int, int]) -> None:
    async with OfflineJudgeApp(judged).run_test(size=size) as pilot:
        await settled(pilot, lambda: shown_rows(pilot) == [RUN])
        check(pilot, "home", size)


@both_sizes
async def test_run(judged: Settings, size: tuple[int, int]) -> None:
    async with OfflineJudgeApp(judged, run=RUN).run_test(size=size) as pilot:
        await until(pilot, lambda: len(shown_rows(pilot)) == 6)
        await settled(pilot, lambda: "n = 6 samples" in screen_text(pilot))
        check(pilot, "run", size)


@both_sizes
async def test_sample(judged: Settings, size: tuple[int, int]) -> None:
    app = OfflineJudgeApp(judged)
    async with app.run_test(size=size) as pilot:
        app.open("sample", run_id=RUN, sample_id="s1")
        await until(pilot, lambda: bool(app.screen.query("#sample-head")))
        await settled(pilot, lambda: "verdict" in static(pilot, "#sample-head"))
        check(pilot, "sample", size)


@both_sizes
async def test_new_run(place: Place, settings: Settings, size: tuple[int, int]) -> None:
    app = OfflineJudgeApp(settings)
    place.data(3)
    async with app.run_test(size=size) as pilot:
        app.open("new_run", data="data.jsonl")
        await until(pilot, lambda: bool(app.screen.query("#option-rounds")))
        app.screen.query_one("#limit", Input).value = "2"
        await settled(pilot, lambda: "--limit 2" in static(pilot, "#command"))
        check(pilot, "new-run", size)


@both_sizes
async def test_help(settings: Settings, size: tuple[int, int]) -> None:
    app = OfflineJudgeApp(settings)
    async with app.run_test(size=size) as pilot:
        app.open("help")
        await settled(pilot, lambda: "Everywhere" in screen_text(pilot))
        check(pilot, "help", size)


def test_no_picture_fetches_anything() -> None:
    for path in FOLDER.glob("*.svg"):
        text = path.read_text("utf-8")
        for harmless in ("http://www.w3.org/2000/svg", "with Rich https://www.textualize.io"):
            text = text.replace(harmless, "")
        assert "http" not in text, path.name
