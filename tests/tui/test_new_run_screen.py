"""A new run in the form: looked at, checked, written as a command, started apart."""

from __future__ import annotations

import shlex
import threading
from pathlib import Path
from typing import Any

import pytest
from offline_judge_tui.app import OfflineJudgeApp
from offline_judge_tui.screens.new_run import NewRunScreen
from offline_judge_tui.screens.run import RunScreen
from textual.pilot import Pilot
from textual.widgets import Checkbox, Input, Select
from ui_parts import Place, ended, screen_text, static, until

from offline_judge import api
from offline_judge.settings import Settings

# Not a conftest.py: the type checker knows modules by their names, and there is one already.
pytest_plugins = ("ui_fixtures",)


async def form_of(pilot: Pilot[None], app: OfflineJudgeApp, data: Path | str = "") -> NewRunScreen:
    app.open("new_run", data=str(data))
    await until(pilot, lambda: isinstance(app.screen, NewRunScreen))
    screen = app.screen
    assert isinstance(screen, NewRunScreen)
    await until(pilot, lambda: bool(screen.query("#options *")))
    return screen


async def test_from_the_form_to_a_run_that_is_watched(place: Place, settings: Settings) -> None:
    data = place.data(4)
    app = OfflineJudgeApp(settings)
    async with app.run_test(size=(140, 45), notifications=True) as pilot:
        screen = await form_of(pilot, app, data)
        screen.query_one("#method", Select).value = "direct"
        await until(pilot, lambda: not screen.query("#option-rounds"))
        screen.query_one("#option-rationale", Checkbox).value = False
        screen.query_one("#limit", Input).value = "3"
        await until(pilot, lambda: "--limit 3 -o" in static(pilot, "#command"))
        await until(pilot, lambda: "Nothing is wrong" in screen_text(pilot))
        words = shlex.split(static(pilot, "#command").replace("\n", " "))
        assert words[:5] == ["env", "OFFLINE_JUDGE_EMBEDDER=none", "offline-judge", "run", "direct"]
        assert words[5:] == [
            *("--data", str(data), "--limit", "3", "-o", "rationale=false", "--judge", "scripted"),
        ]
        assert "4 samples, 4 with a label" in screen_text(pilot)
        await pilot.press("ctrl+s")
        await until(pilot, lambda: isinstance(app.screen, RunScreen))
        run_id = api.list_runs(settings)[0].id
        await until(pilot, lambda: not api.run_holder(run_id, settings))
    view = ended(run_id, settings)
    assert view.summary.outcomes == {"scored": 3}
    assert view.manifest.options == {"rationale": False}


async def test_what_is_wrong_is_said_and_nothing_is_started(
    place: Place, settings: Settings
) -> None:
    app = OfflineJudgeApp(settings)
    async with app.run_test(size=(140, 45), notifications=True) as pilot:
        screen = await form_of(pilot, app)
        await until(pilot, lambda: "Name a data file." in screen_text(pilot))
        await pilot.press("ctrl+s")
        await until(pilot, lambda: "cannot begin yet" in screen_text(pilot))
        screen.query_one("#data", Input).value = str(place.path / "absent.jsonl")
        await until(pilot, lambda: "absent.jsonl" in static(pilot, "#problems"))
        screen.query_one("#data", Input).value = str(place.data(5, s3={"response": ""}))
        await until(pilot, lambda: "line 4" in static(pilot, "#problems"))
        screen.query_one("#limit", Input).value = "many"
        await until(pilot, lambda: "`many` is no number" in static(pilot, "#problems"))
        screen.query_one("#limit", Input).value = ""
        screen.query_one("#skip_bad", Checkbox).value = True
        screen.query_one("#option-rounds", Input).value = "99"
        await until(pilot, lambda: "Option `rounds`" in static(pilot, "#problems"))
        screen.query_one("#option-rounds", Input).value = "1"
        await until(pilot, lambda: "Nothing is wrong" in static(pilot, "#problems"))
        assert "-o rounds=1" in static(pilot, "#command")
        screen.query_one("#judge", Select).value = "qwen2.5-coder-0.5b-instruct"
        await until(pilot, lambda: "are not here" in static(pilot, "#problems"))
        assert "at least" in static(pilot, "#judge-fit")
        await pilot.press("ctrl+s")
        await pilot.pause(0.2)
        assert app.screen is screen
    assert api.list_runs(settings) == []


async def test_columns_are_named(place: Place, settings: Settings) -> None:
    table = place.path / "d.csv"
    table.write_text("ask,said\nWho?,Me.\nWhy?,Because [b]so[/b].\n")
    app = OfflineJudgeApp(settings)
    async with app.run_test(size=(140, 45), notifications=True) as pilot:
        screen = await form_of(pilot, app, table)
        await until(pilot, lambda: bool(screen.query("#field-question")))
        assert "no column" in static(pilot, "#problems") or "question" in static(pilot, "#problems")
        screen.query_one("#field-question", Select).value = "ask"
        screen.query_one("#field-response", Select).value = "said"
        await until(pilot, lambda: "Nothing is wrong" in static(pilot, "#problems"))
        assert "--map ask=question --map said=response" in static(pilot, "#command")
        assert "Because [b]so[/b]." in static(pilot, "#rows")


async def test_columns_that_are_known_before_the_choices_are_offered_all_the_same(
    place: Place, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_at = threading.Event()
    choices = api.run_choices

    def late(*arguments: Any) -> Any:
        assert looked_at.wait(30)
        return choices(*arguments)

    monkeypatch.setattr(api, "run_choices", late)
    table = place.path / "d.csv"
    table.write_text("ask,said\nWho?,Me.\n")
    app = OfflineJudgeApp(settings)
    async with app.run_test(size=(140, 45), notifications=True) as pilot:
        app.open("new_run", data=str(table))
        await until(pilot, lambda: "ask: Who?" in screen_text(pilot))
        looked_at.set()
        await until(pilot, lambda: bool(app.screen.query("#field-question")))


async def test_what_keeps_a_run_from_beginning_comes_back(
    place: Place, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = place.data(2)
    app = OfflineJudgeApp(settings)
    async with app.run_test(size=(140, 45), notifications=True) as pilot:
        screen = await form_of(pilot, app, data)
        screen.query_one("#method", Select).value = "direct"
        await until(pilot, lambda: "run direct" in static(pilot, "#command"))
        # Set behind the form's back, as another program might.
        monkeypatch.setenv("OFFLINE_JUDGE_WINDOW", "nonsense")
        await pilot.press("ctrl+s")
        await until(pilot, lambda: "did not work" in screen_text(pilot))
        assert app.screen is screen


async def test_the_command_is_copied_and_written_to_a_file(
    place: Place, settings: Settings
) -> None:
    app = OfflineJudgeApp(settings)
    async with app.run_test(size=(140, 45), notifications=True) as pilot:
        await form_of(pilot, app, place.data(2))
        await until(pilot, lambda: "offline-judge" in static(pilot, "#command"))
        await pilot.press("ctrl+y")
        await until(pilot, lambda: "sent to the terminal" in screen_text(pilot))
        assert app.clipboard.startswith("env OFFLINE_JUDGE_EMBEDDER=none offline-judge run sage")
        app.action_copy_file()
        await until(pilot, lambda: bool(app.screen.query("#path")))
        path = place.path / "taken.txt"
        app.screen.query_one("#path", Input).value = str(place.data(2))
        await pilot.click("#write")
        await until(pilot, lambda: "exists already" in screen_text(pilot))
        app.screen.query_one("#path", Input).value = str(path)
        app.screen.query_one("#path", Input).focus()
        await pilot.press("enter")
        await until(pilot, path.exists)
        assert path.read_text() == app.clipboard


async def test_responses_come_from_a_file_or_a_candidate(place: Place, settings: Settings) -> None:
    asked = place.path / "asked.jsonl"
    asked.write_text('{"id": "a", "question": "Who?"}\n')
    told = place.path / "told.jsonl"
    told.write_text('{"id": "a", "response": "Me."}\n')
    app = OfflineJudgeApp(settings)
    async with app.run_test(size=(140, 45)) as pilot:
        screen = await form_of(pilot, app, asked)
        await until(pilot, lambda: "response" in static(pilot, "#problems"))
        screen.query_one("#responses", Input).value = str(told)
        await until(pilot, lambda: "Nothing is wrong" in static(pilot, "#problems"))
        assert f"--responses {told}" in static(pilot, "#command")
        screen.query_one("#candidate", Select).value = "scripted"
        await until(pilot, lambda: "either joined or written" in static(pilot, "#problems"))
        screen.query_one("#responses", Input).value = ""
        await until(pilot, lambda: "Nothing is wrong" in static(pilot, "#problems"))
        assert "--candidate scripted" in static(pilot, "#command")
        screen.query_one("#calibration", Input).value = str(told)
        await until(pilot, lambda: "told.jsonl" in static(pilot, "#problems"))
