"""How the UI looks and listens: without colours, in the light, small, and with other keys."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest
from offline_judge_tui.app import OfflineJudgeApp
from offline_judge_tui.keys import KEYS, PLACES
from offline_judge_tui.registry import SCREENS
from offline_judge_tui.screens.home import HomeScreen
from offline_judge_tui.screens.new_run import NewRunScreen
from offline_judge_tui.theme import DARK, LIGHT
from offline_judge_tui.widgets.row_table import RowTable
from textual.binding import Binding
from textual.pilot import Pilot
from textual.screen import Screen
from ui_parts import Place, screen_text, shown_rows, until

from offline_judge.errors import SettingsError
from offline_judge.settings import Settings, load_keys, load_settings

# Not a conftest.py: the type checker knows modules by their names, and there is one already.
pytest_plugins = ("ui_fixtures",)


def _screens() -> list[type[Screen[object]]]:
    made = []
    for entry in SCREENS.values():
        module, _, name = entry.target.partition(":")
        made.append(getattr(__import__(module, fromlist=[name]), name))
    return made


def test_every_binding_is_in_the_table_of_keys_and_does_something() -> None:
    used = set()
    for owner in (OfflineJudgeApp, RowTable, *_screens()):
        for binding in owner.__dict__.get("BINDINGS", ()):
            assert isinstance(binding, Binding), owner
            assert binding.id in KEYS, binding
            used.add(binding.id)
            action = binding.action.partition("(")[0].rpartition(".")[2]
            target = OfflineJudgeApp if binding.action.startswith("app.") else owner
            assert inspect.isfunction(getattr(target, f"action_{action}", None)), binding
    others = {name for name in KEYS if name not in used}
    # Keys of dialogs, which are no screens of the registry.
    assert others <= {"sample.judge"}


def test_every_key_has_a_place_and_no_place_gives_one_key_twice() -> None:
    for place in PLACES:
        keys = [
            k for n, key in KEYS.items() if n.startswith(f"{place}.") for k in key.keys.split(",")
        ]
        assert keys, place
        assert len(keys) == len(set(keys)), place
    assert {name.partition(".")[0] for name in KEYS} == set(PLACES)


async def test_a_key_that_is_set_anew_works_and_the_old_one_does_not(
    place: Place, settings: Settings
) -> None:
    place.run(settings)
    wanted = {"home.new": "z,f9", "home.nwe": "x"}
    app = OfflineJudgeApp(settings, wanted_keys=wanted)
    async with app.run_test(size=(140, 90), notifications=True) as pilot:
        await until(pilot, lambda: bool(shown_rows(pilot)))
        await until(pilot, lambda: "`home.nwe`" in screen_text(pilot))
        assert "`home.new`?" in screen_text(pilot)
        await pilot.press("n")
        await pilot.pause(0.2)
        assert isinstance(app.screen, HomeScreen)
        await pilot.press("f9")
        await until(pilot, lambda: isinstance(app.screen, NewRunScreen))
        app.open("help")
        await until(pilot, lambda: "z or f9" in screen_text(pilot))


def test_keys_are_read_from_both_files_the_project_last(tmp_path: Path) -> None:
    user = tmp_path / "config.toml"
    user.write_text('judge = "x"\n[keys]\n"home.new" = "a"\n"app.help" = "h"\n')
    (tmp_path / "offline-judge.toml").write_text('[keys]\nhome.new = "b"\n')
    assert load_keys(project_dir=tmp_path, user_file=user) == {"home.new": "b", "app.help": "h"}
    found = load_settings({}, environ={}, project_dir=tmp_path, user_file=user)
    assert found.judge == "x"


@pytest.mark.parametrize("text", ['keys = "n"', '[keys]\n"home.new" = 3', "[keys]\nhome.new = []"])
def test_keys_that_are_no_texts_are_refused(tmp_path: Path, text: str) -> None:
    user = tmp_path / "config.toml"
    user.write_text(text)
    with pytest.raises(SettingsError, match="must be a text"):
        load_keys(project_dir=tmp_path, user_file=user)


async def _colours(pilot: Pilot[None]) -> set[str]:
    found = set()
    for strip in pilot.app.screen._compositor.render_strips():
        for segment in strip.apply_filter(
            pilot.app._filters[-1], pilot.app.screen.background_colors[1]
        ):
            colour = segment.style.color if segment.style else None
            if colour is not None and colour.triplet is not None:
                red, green, blue = colour.triplet
                found.add("grey" if max(red, green, blue) - min(red, green, blue) < 3 else "colour")
    return found


async def test_without_colours_everything_is_still_told(
    place: Place, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = place.run(settings, 12)
    monkeypatch.setenv("NO_COLOR", "1")
    app = OfflineJudgeApp(settings, run=run_id)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: len(shown_rows(pilot)) == 12)
        assert app.no_color
        assert await _colours(pilot) == {"grey"}
        # What a colour says, a sign says too.
        assert "≠" in screen_text(pilot)
        assert "completed" in screen_text(pilot)


async def test_it_is_light_where_that_is_wished(place: Place, settings: Settings) -> None:
    place.run(settings)
    app = OfflineJudgeApp(settings)
    async with app.run_test(size=(80, 24)) as pilot:
        assert app.theme == DARK.name
        await pilot.press("ctrl+t")
        assert app.theme == LIGHT.name
        assert app.screen.styles.background.brightness > 0.8
        await pilot.press("ctrl+t")
        assert app.theme == DARK.name


async def test_the_palette_offers_every_screen_of_the_navigation(settings: Settings) -> None:
    app = OfflineJudgeApp(settings)
    async with app.run_test(size=(80, 24)) as pilot:
        titles = {command.title for command in app.get_system_commands(app.screen)}
        assert {entry.title for entry in SCREENS.values() if entry.navigated} <= titles
        app.go("new_run")
        await until(pilot, lambda: isinstance(app.screen, NewRunScreen))
        app.go("home")
        await until(pilot, lambda: isinstance(app.screen, HomeScreen))
