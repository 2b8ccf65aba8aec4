"""`config show`, and the warning about variables that are no settings."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import pytest
from conftest import Dirs

from offline_judge.cli.main import main
from offline_judge.settings import Settings

Program = Callable[..., tuple[int, str, str]]


@pytest.fixture
def program(
    isolated_dirs: Dirs,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Program:
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as end:
            main(arguments)
        assert isinstance(end.value.code, int)
        out, err = capsys.readouterr()
        return end.value.code, out, err

    return call


def test_every_setting_has_its_value_origin_and_help(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OFFLINE_JUDGE_LANES", "3")
    (tmp_path / "offline-judge.toml").write_text("seed = 7\n")
    code, out, err = program("--data-dir", str(tmp_path / "here"), "config", "show", "--json")
    assert (code, err) == (0, "")
    found = {one["name"]: one for one in json.loads(out)["settings"]}
    assert found.keys() == {item.name for item in fields(Settings)} - {"origins"}
    assert (found["lanes"]["value"], found["lanes"]["origin"]) == (3, "OFFLINE_JUDGE_LANES")
    assert (found["seed"]["value"], found["seed"]["origin"]) == (
        7,
        str(tmp_path / "offline-judge.toml"),
    )
    assert found["data_dir"]["origin"] == "flag"
    assert found["judge"]["origin"] == "default"
    assert all(one["help"] for one in found.values())


def test_the_folders_in_use_are_told(program: Program, tmp_path: Path) -> None:
    _, out, _ = program("--data-dir", str(tmp_path / "here"), "config", "show", "--json")
    folders = json.loads(out)["folders"]
    assert folders["runs"] == str(tmp_path / "here/runs")
    assert folders["models"] == str(tmp_path / "here/models")
    assert {"cache", "corpora", "control sockets"} <= folders.keys()


def test_people_get_a_table_with_the_files_that_count(program: Program, tmp_path: Path) -> None:
    code, out, _ = program("config", "show")
    assert code == 0
    lines = out.splitlines()
    assert lines[0].split() == ["setting", "value", "origin", "for"]
    assert any(line.split()[:3] == ["lanes", "1", "default"] for line in lines)
    assert any("offline-judge.toml (not there)" in line for line in lines)


def test_the_secret_is_never_told(program: Program, isolated_dirs: Dirs) -> None:
    secret = bytes(range(33, 65))
    (isolated_dirs.data / "secret").write_bytes(secret)
    for arguments in (("config", "show"), ("config", "show", "--json")):
        _, out, err = program(*arguments)
        assert secret.decode() not in out + err
        assert json.dumps(secret.decode()) not in out
        assert secret.hex() not in out + err


@pytest.mark.parametrize("command", [("runs", "list"), ("models", "list"), ("config", "show")])
def test_any_command_warns_of_a_misspelt_variable_once(
    program: Program, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    monkeypatch.setenv("OFFLINE_JUDGE_WINDOWS", "1")
    code, out, err = program(*command, "--json", "-q")
    assert code == 0
    assert err.count("OFFLINE_JUDGE_WINDOWS is no setting; did you mean OFFLINE_JUDGE_WINDOW?") == 1
    if command[0] == "config":
        unknown = json.loads(out)["unknown_variables"]
        assert unknown == {"OFFLINE_JUDGE_WINDOWS": "OFFLINE_JUDGE_WINDOW"}


def test_a_misspelt_variable_is_in_the_table_too(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OFFLINE_JUDGE_XQZXQZ", "1")
    assert "OFFLINE_JUDGE_XQZXQZ" in program("config", "show")[1]


def test_a_bad_value_is_told_with_its_place(program: Program, tmp_path: Path) -> None:
    (tmp_path / "offline-judge.toml").write_text("judge = 7\n")
    code, _, err = program("config", "show")
    assert code == 2
    assert "offline-judge.toml" in err
    assert "judge" in err
