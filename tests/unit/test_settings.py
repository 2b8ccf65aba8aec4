"""Settings: who wins, what a file may say, and variables that are none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from offline_judge.errors import SettingsError
from offline_judge.settings import Settings, describe, load_settings, unknown_variables


def load(
    folder: Path,
    project: str = "",
    user: str = "",
    environ: dict[str, str] | None = None,
    **flags: Any,
) -> Settings:
    (folder / "offline-judge.toml").write_text(project)
    (folder / "user.toml").write_text(user)
    return load_settings(
        flags, environ=environ or {}, project_dir=folder, user_file=folder / "user.toml"
    )


def test_a_flag_beats_the_environment_that_beats_the_project_that_beats_the_user(
    tmp_path: Path,
) -> None:
    user = "lanes = 2\nseed = 2\nbatch = 2\nwindow = 1002\n"
    project = "lanes = 3\nseed = 3\nbatch = 3\n"
    environ = {"OFFLINE_JUDGE_LANES": "4", "OFFLINE_JUDGE_SEED": "4"}
    found = load(tmp_path, project, user, environ, lanes=5)
    assert (found.lanes, found.seed, found.batch, found.window, found.threads) == (5, 4, 3, 1002, 0)
    origins = {name: found.origins[name] for name in ("lanes", "seed", "batch", "window", "judge")}
    assert origins == {
        "lanes": "flag",
        "seed": "OFFLINE_JUDGE_SEED",
        "batch": str(tmp_path / "offline-judge.toml"),
        "window": str(tmp_path / "user.toml"),
        "judge": "default",
    }


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("judge = 7", "a text in quotes"),
        ("judge = true", "a text in quotes"),
        ('judge = ["a"]', "a text in quotes"),
        ("data_dir = 2025-01-01", "a text in quotes"),
        ('lanes = "2"', "a whole number"),
        ("lanes = 2.0", "a whole number"),
        ("lanes = true", "a whole number"),
        ('cache = "false"', "true or false"),
        ("cache = 0", "true or false"),
        ("lanes = 0", "at least 1"),
    ],
)
def test_a_value_of_another_type_in_a_file_is_refused_with_its_place(
    tmp_path: Path, line: str, told: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        load(tmp_path, line)
    assert told in str(caught.value)
    assert str(tmp_path / "offline-judge.toml") in str(caught.value)


def test_what_a_refusal_gives_as_an_example_is_accepted(tmp_path: Path) -> None:
    for described in describe(Settings()):
        wrong = "[1]"
        with pytest.raises(SettingsError) as caught:
            load(tmp_path, f"{described.name} = {wrong}")
        example = caught.value.remedy.partition(": ")[2]
        assert getattr(load(tmp_path, example), described.name) == described.value


@pytest.mark.parametrize("value", ["nan", "inf"])
def test_a_number_must_be_finite(tmp_path: Path, value: str) -> None:
    with pytest.raises(SettingsError):
        load(tmp_path, f"memory_similarity = {value}")


def test_text_is_read_as_what_it_means_in_the_environment(tmp_path: Path) -> None:
    found = load(tmp_path, environ={"OFFLINE_JUDGE_LANES": "3", "OFFLINE_JUDGE_CACHE": "off"})
    assert (found.lanes, found.cache) == (3, False)


def test_a_misspelt_key_gets_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="Did you mean `window`"):
        load(tmp_path, "windw = 4096")


def test_variables_that_are_no_settings_are_found_with_the_nearest() -> None:
    environ = {
        "OFFLINE_JUDGE_LANE": "2",
        "OFFLINE_JUDGE_ZZZZZZZZ": "1",
        "OFFLINE_JUDGE_LANES": "2",
        "OFFLINE_JUDGE_TEST_MODELS": "/models",
        "OTHER_LANE": "1",
    }
    assert unknown_variables(environ) == {
        "OFFLINE_JUDGE_LANE": "OFFLINE_JUDGE_LANES",
        "OFFLINE_JUDGE_ZZZZZZZZ": "",
    }


def test_every_setting_says_what_it_is_for() -> None:
    for described in describe(Settings()):
        assert described.help.endswith("."), described.name
        assert described.variable == f"OFFLINE_JUDGE_{described.name.upper()}"


@pytest.mark.parametrize(
    ("name", "value", "known"),
    [("gpu", "maybe", "auto, off, required"), ("kv_cache", "f8", "f16, q8_0, q4_0")],
)
def test_a_value_that_is_none_of_its_choices_is_told_with_them(
    name: str, value: str, known: str
) -> None:
    with pytest.raises(SettingsError, match=f"`{name}` must be one of {known}"):
        load_settings({name: value}, environ={})


def test_the_key_of_a_server_is_no_setting_and_no_unknown_variable() -> None:
    environ = {"OFFLINE_JUDGE_API_KEY": "secret"}
    assert unknown_variables(environ) == {}
    settings = load_settings({}, environ=environ)
    assert "secret" not in repr(settings)
