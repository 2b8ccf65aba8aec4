"""Home: every run is found, narrowed, opened, resumed and deleted; newcomers are shown the way."""

from __future__ import annotations

import shutil

from offline_judge_tui.app import OfflineJudgeApp
from offline_judge_tui.screens.confirm import Confirm
from offline_judge_tui.screens.home import HomeScreen
from offline_judge_tui.screens.new_run import NewRunScreen
from offline_judge_tui.screens.run import RunScreen
from offline_judge_tui.widgets.welcome import Welcome
from textual.widgets import Button, Input
from ui_parts import (
    Place,
    ended,
    screen_text,
    shown_rows,
    static,
    table_of,
    until,
)

from offline_judge import api
from offline_judge.settings import Settings

# Not a conftest.py: the type checker knows modules by their names, and there is one already.
pytest_plugins = ("ui_fixtures",)


async def test_a_newcomer_is_led_to_the_demos_samples(settings: Settings) -> None:
    app = OfflineJudgeApp(settings)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await until(pilot, lambda: "Three steps" in screen_text(pilot))
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, NewRunScreen))
        await until(pilot, lambda: app.screen.query_one("#data", Input).value != "")
        assert app.screen.query_one("#data", Input).value == str(api.demo_samples())


async def test_runs_are_listed_newest_first_and_narrowed_by_text(
    place: Place, settings: Settings
) -> None:
    first, second = place.run(settings), place.run(settings, method="lexical")
    app = OfflineJudgeApp(settings)
    async with app.run_test(size=(140, 45), notifications=True) as pilot:
        await until(pilot, lambda: len(shown_rows(pilot)) == 2)
        assert shown_rows(pilot) == [second, first]
        row = table_of(pilot).known(1)
        assert row is not None
        assert row.cells[1:6] == ("direct", "data.jsonl", "scripted", "completed", "6/6")
        assert not app.screen.query(Welcome)
        await pilot.press("slash", *"LEX")
        await until(pilot, lambda: shown_rows(pilot) == [second])
        assert "1 of 2 runs" in static(pilot, "#standing")
        await pilot.press("escape")
        await until(pilot, lambda: len(shown_rows(pilot)) == 2)
        await pilot.press("down", "enter")
        await until(pilot, lambda: isinstance(app.screen, RunScreen))
        await until(pilot, lambda: first in screen_text(pilot))


async def test_deleting_asks_first(place: Place, settings: Settings) -> None:
    run_id = place.run(settings)
    app = OfflineJudgeApp(settings)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await until(pilot, lambda: shown_rows(pilot) == [run_id])
        await pilot.press("d")
        await until(pilot, lambda: isinstance(app.screen, Confirm))
        assert run_id in screen_text(pilot)
        # The harmless answer is the one that a quick Enter gives.
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, HomeScreen))
        assert len(api.list_runs(settings)) == 1
        await pilot.press("d")
        await until(pilot, lambda: isinstance(app.screen, Confirm))
        await pilot.click(app.screen.query_one("#yes", Button))
        await until(pilot, lambda: bool(app.screen.query(Welcome)))
        assert api.list_runs(settings) == []


async def test_a_run_is_resumed_in_a_process_of_its_own(place: Place, settings: Settings) -> None:
    run_id = place.run(settings, limit=2)
    trace = settings.runs_path / run_id / "events-main.jsonl"
    trace.write_bytes(b"".join(trace.read_bytes().splitlines(keepends=True)[:-3]))
    app = OfflineJudgeApp(settings)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await until(pilot, lambda: "interrupted" in screen_text(pilot))
        await pilot.press("r")
        await until(pilot, lambda: isinstance(app.screen, RunScreen))
        await until(pilot, lambda: not api.run_holder(run_id, settings))
    assert ended(run_id, settings).summary.outcomes == {"scored": 2}


async def test_what_cannot_be_resumed_is_a_message(place: Place, settings: Settings) -> None:
    place.run(settings, limit=2)
    place.data(3)
    app = OfflineJudgeApp(settings)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await until(pilot, lambda: len(shown_rows(pilot)) == 1)
        await pilot.press("r")
        await until(pilot, lambda: "did not work" in screen_text(pilot))
        assert isinstance(app.screen, HomeScreen)


async def test_names_are_shown_as_they_are_and_a_damaged_run_is_left_out(
    place: Place, settings: Settings
) -> None:
    data = place.data(2, name="[red]x[bold].jsonl")
    run_id = api.run(api.RunRequest("direct", data), settings).manifest.run_id
    (settings.runs_path / place.run(settings) / "run.json").write_text("{")
    app = OfflineJudgeApp(settings)
    async with app.run_test(size=(140, 45), notifications=True) as pilot:
        await until(pilot, lambda: "1 run," in static(pilot, "#standing"))
        assert shown_rows(pilot) == [run_id]
        assert "[red]x[bold].jsonl" in screen_text(pilot)


async def test_a_run_that_is_gone_when_it_is_opened_is_a_message(
    place: Place, settings: Settings
) -> None:
    run_id = place.run(settings)
    app = OfflineJudgeApp(settings)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await until(pilot, lambda: shown_rows(pilot) == [run_id])
        shutil.rmtree(settings.runs_path / run_id)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, RunScreen))
        await until(pilot, lambda: "No run" in static(pilot, "#head"))
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, HomeScreen))


async def test_runs_of_other_processes_are_found_while_it_is_open(
    place: Place, settings: Settings
) -> None:
    place.run(settings)
    app = OfflineJudgeApp(settings)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await until(pilot, lambda: len(shown_rows(pilot)) == 1)
        started = api.start(api.RunRequest("direct", place.data(2)), settings)
        await until(pilot, lambda: shown_rows(pilot)[:1] == [started.run_id])
