"""`models add` and `models rm` on the command line."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from cli_fakes import CommandLine, answering

from offline_judge.errors import RunLockedError
from offline_judge.settings import Settings


@dataclass(frozen=True)
class Card:
    name: str = "mine"


@dataclass(frozen=True)
class Model:
    card: Card = field(default_factory=Card)
    path: Path = Path("/w/m.gguf")


@dataclass(frozen=True)
class Added:
    model: Model = field(default_factory=Model)
    notes: tuple[str, ...] = ("its family is taken to be f",)


@dataclass(frozen=True)
class Removed:
    name: str = "mine"
    files: tuple[Path, ...] = (Path("/m/mine/m.gguf"),)
    size: int = 1_500_000_000
    kept: tuple[Path, ...] = ()
    card: bool = True


@pytest.fixture
def cli(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> CommandLine:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    return CommandLine(monkeypatch, capsys)


def test_adding_hands_on_what_the_user_says(cli: CommandLine) -> None:
    seen: list[Any] = []

    def add(path: Path, settings: Settings, progress: Any, **more: Any) -> Added:
        seen.append((path, more))
        return Added()

    cli.api.models_add = add
    flags = ["--name", "mine", "--window", "4096", "--family", "f", "--licence", "MIT", "--copy"]

    assert cli("models", "add", "m.gguf", *flags).code == 0
    said = {"name": "mine", "window": 4096, "family": "f", "licence": "MIT"}
    assert seen == [(Path("m.gguf"), {"said": said, "keep": "copy"})]
    assert cli.out == "mine  /w/m.gguf\n"
    assert "its family is taken to be f" in cli.err
    assert "offline-judge models show mine" in cli.err


def test_adding_as_json(cli: CommandLine) -> None:
    cli.api.models_add = answering(Added())

    document = json.loads(cli("models", "add", "m.gguf", "--json").out)

    assert document["name"] == "mine"
    assert document["path"] == "/w/m.gguf"
    assert document["notes"] == ["its family is taken to be f"]


def test_copying_and_moving_exclude_each_other(cli: CommandLine) -> None:
    cli.api.models_add = answering(Added())

    assert cli("models", "add", "m.gguf", "--copy", "--move").code == 2


def test_removing_says_how_much_goes_and_what_stays(cli: CommandLine) -> None:
    cli.api.models_removal = cli.api.models_rm = answering(Removed(kept=(Path("/w/own.gguf"),)))

    assert cli("models", "rm", "mine", "--yes").code == 0
    assert "Deleted: 1.50 GB of mine in 1 file and the card mine." in cli.err
    assert "only referred to: /w/own.gguf" in cli.err


def test_removing_as_json(cli: CommandLine) -> None:
    cli.api.models_removal = cli.api.models_rm = answering(Removed())

    document = json.loads(cli("models", "rm", "mine", "--yes", "--json").out)

    assert (document["size"], document["card"]) == (1_500_000_000, True)


def test_where_nobody_can_be_asked_yes_must_be_said(cli: CommandLine) -> None:
    cli.api.models_removal = answering(Removed())
    cli.api.models_rm = answering(AssertionError("removed"))

    assert cli("models", "rm", "mine").code == 2
    assert "--yes" in cli.err
    assert "1.50 GB of mine" in cli.err


def test_on_a_terminal_it_is_asked(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    cli.api.models_removal = cli.api.models_rm = answering(Removed())
    asked: list[str] = []
    monkeypatch.setattr("click.confirm", lambda text, **_: asked.append(text))

    assert cli("models", "rm", "mine").code == 0
    assert asked == ["Delete 1.50 GB of mine in 1 file and the card mine?"]


def test_nothing_to_remove_is_told(cli: CommandLine) -> None:
    cli.api.models_removal = answering(Removed(files=(), size=0, card=False))
    cli.api.models_rm = answering(AssertionError("removed"))

    assert cli("models", "rm", "mine").code == 0
    assert "Nothing of mine is here" in cli.err


def test_a_model_in_use_is_not_removed(cli: CommandLine) -> None:
    cli.api.models_removal = answering(Removed())
    cli.api.models_rm = answering(RunLockedError("Run r uses mine now."))

    assert cli("models", "rm", "mine", "--yes").code == 2
    assert "Run r uses mine now" in cli.err
