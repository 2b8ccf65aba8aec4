from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
import pytest
from cli_fakes import HOSTILE, CommandLine, answering

from offline_judge.errors import DownloadError, LicenceError
from offline_judge.settings import Settings


@dataclass(frozen=True)
class Source:
    label: str = "hub x/y"


@dataclass(frozen=True)
class File:
    name: str = "m.gguf"
    size: int = 1_000_000
    sha256: str = "a" * 64
    sources: tuple[Source, ...] = (Source(), Source("packages p 1.0"))


@dataclass(frozen=True)
class Embedding:
    format: str = "gguf"
    dimension: int = 1024
    max_tokens: int = 512
    pooling: str = "last"
    query_prefix: str = "Instruct: find\nQuery:"
    passage_prefix: str = ""


@dataclass(frozen=True)
class Listed:
    repository: str = "owner/model"
    revision: str = "main"
    pattern: str = "*Q4_K_M.gguf"


@dataclass(frozen=True)
class Card:
    name: str = "tiny"
    family: str = "f"
    role: str = "judge"
    parameters: int = 1_540_000_000
    quantisation: str = "Q4"
    window: int = 4096
    licence: str = "Apache-2.0"
    files: tuple[File, ...] = (File(),)
    size: int = 1_117_320_768
    embedding: Embedding | None = None
    licence_url: str = ""
    non_commercial: bool = False
    gated: bool = False
    hub: Listed | None = None


@dataclass(frozen=True)
class Fit:
    needed: int = 1_500_000_000
    free: int | None = 4_000_000_000
    at_least: bool = False
    slot: int = 117_000_000
    verdict: str = "fits"


@dataclass(frozen=True)
class Model:
    card: Card = field(default_factory=Card)
    state: str = "absent"
    path: Path | None = None
    fit: Fit | None = None
    added: bool = False
    remedy: str = "Fetch them: offline-judge models pull tiny"


@dataclass(frozen=True)
class Checked:
    name: str = "m.gguf"
    path: Path = Path("/m/m.gguf")
    problem: str = ""


@dataclass(frozen=True)
class Report:
    files: tuple[Checked, ...] = (Checked(),)
    remedy: str = "Fetch them: offline-judge models pull tiny"
    model: str = "tiny"
    ok: bool = True


@pytest.fixture
def cli(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> CommandLine:
    monkeypatch.chdir(tmp_path)
    return CommandLine(monkeypatch, capsys)


def test_an_embedder_shows_how_it_makes_vectors(cli: CommandLine) -> None:
    card = Card(role="embedder", embedding=Embedding())
    cli.api.models_show = answering(Model(card))

    out = cli("models", "show", "tiny").out

    assert "1024 numbers, the last token, texts cut behind 512 tokens" in out
    assert r'"Instruct: find\nQuery:"' in out
    assert "passage prefix" not in out


def test_models_are_listed(cli: CommandLine) -> None:
    cli.api.models_list = answering([Model(), Model(state="present", path=Path("/m"))])

    lines = cli("models", "list").out.splitlines()

    assert lines[1].split() == ["tiny", "judge", "1.5", "B", "Q4", "1.12", "GB", "4,096", "-", "no"]
    assert lines[2].endswith("yes")


def test_the_memory_is_listed_and_a_guess_is_marked(cli: CommandLine) -> None:
    listed = Card(files=(), size=0, hub=Listed())
    cli.api.models_list = answering([Model(fit=Fit()), Model(listed, fit=Fit(at_least=True))])

    first, second = cli("models", "list").out.splitlines()[1:]

    assert " 1.50 GB, fits" in first
    assert "about 1.50 GB, fits" in second
    assert "at the pull" in second


def test_a_model_shows_what_it_needs_of_what_is_free(cli: CommandLine) -> None:
    cli.api.models_show = answering(Model(fit=Fit()))

    assert (
        "fits: 1.50 GB of 4.00 GB free, with one slot of 4,096 tokens; each further slot 117.0 MB"
        in cli("models", "show", "tiny").out
    )
    cli.api.models_show = answering(Model(fit=Fit(free=None, at_least=True, slot=0)))
    assert "at least 1.50 GB, with one slot\n" in cli("models", "show", "tiny").out


def test_the_memory_is_in_the_json(cli: CommandLine) -> None:
    cli.api.models_show = answering(Model(fit=Fit()))

    shown = json.loads(cli("models", "show", "tiny", "--json").out)

    assert shown["memory"] == {
        "needed": 1_500_000_000,
        "free": 4_000_000_000,
        "at_least": False,
        "slot": 117_000_000,
        "verdict": "fits",
    }


def test_a_card_by_hub_id_shows_where_its_files_are_listed(cli: CommandLine) -> None:
    card = Card(
        files=(), size=0, hub=Listed(), non_commercial=True, gated=True, licence_url="https://l"
    )
    cli.api.models_show = answering(Model(card))

    out = cli("models", "show", "tiny").out

    assert "owner/model main, *Q4_K_M.gguf" in out
    assert "asked for files and hashes at the first pull" in out
    assert "not for commercial use" in out
    assert "accepted its terms" in out
    assert "https://l" in out


class Licensed:
    """A pull that wants its licence accepted."""

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []

    def __call__(self, name: str, settings: Settings, progress: Any, **options: Any) -> Path:
        self.calls.append(options)
        if not options.get("accept_licence"):
            raise LicenceError(f"{name} is not for everybody.", remedy="Say --accept-licence")
        return Path("/m/x")


def test_a_licence_is_shown_and_asked_for(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    cli.api.models_pull = pull = Licensed()
    asked: list[str] = []

    def confirm(text: str, **_: Any) -> bool:
        asked.append(text)
        return True

    monkeypatch.setattr("click.confirm", confirm)

    assert cli("models", "pull", "a").code == 0
    assert "a is not for everybody." in cli.err
    assert asked == ["Do you accept this licence?"]
    assert pull.calls[-1]["accept_licence"] is True


def test_a_licence_that_is_declined_is_not_accepted(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    cli.api.models_pull = pull = Licensed()

    def confirm(*_: Any, **__: Any) -> bool:
        raise click.Abort

    monkeypatch.setattr("click.confirm", confirm)

    assert cli("models", "pull", "a").code == 130
    assert len(pull.calls) == 1


def test_where_nobody_can_answer_the_flag_is_named(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    cli.api.models_pull = pull = Licensed()

    assert cli("models", "pull", "a").code == 2
    assert cli.err.count("not for everybody") == 1
    assert "--accept-licence" in cli.err
    assert len(pull.calls) == 1


def test_the_flag_shows_the_licence_and_accepts_it(cli: CommandLine) -> None:
    cli.api.models_pull = pull = Licensed()

    assert cli("models", "pull", "a", "--accept-licence", "--repin").code == 0
    assert "a is not for everybody." in cli.err
    assert pull.calls[-1] == {"accept_licence": True, "repin": True}


def test_listed_models_as_json_lines(cli: CommandLine) -> None:
    cli.api.models_list = answering([Model(state="present", path=Path("/m"))])

    (entry,) = [json.loads(line) for line in cli("models", "list", "--json").out.splitlines()]

    assert (entry["name"], entry["state"], entry["path"]) == ("tiny", "present", "/m")
    assert entry["files"][0]["sha256"] == "a" * 64


def test_a_model_is_shown_with_hashes_and_sources_in_order(cli: CommandLine) -> None:
    cli.api.models_show = answering(Model(Card(family=HOSTILE)))

    cli("models", "show", "tiny")

    assert cli.out.index("hub x/y") < cli.out.index("packages p 1.0")
    assert "a" * 64 in cli.out
    assert "offline-judge models pull tiny" in cli.err
    assert "\x1b" not in cli.out


def test_several_models_are_pulled_in_turn(cli: CommandLine) -> None:
    pulled: list[str] = []

    def pull(name: str, settings: Settings, progress: Any, **_: Any) -> Path:
        pulled.append(name)
        return Path(f"/m/{name}")

    cli.api.models_pull = pull
    cli("models", "pull", "a", "b", "--json")

    assert pulled == ["a", "b"]
    assert [json.loads(line)["path"] for line in cli.out.splitlines()] == ["/m/a", "/m/b"]


def test_a_failed_pull_is_told(cli: CommandLine) -> None:
    cli.api.models_pull = answering(DownloadError("Every source failed", where="m.gguf"))

    assert cli("models", "pull", "a").code == 3
    assert "Every source failed" in cli.err


def test_pulling_nothing_is_a_usage_error(cli: CommandLine) -> None:
    assert cli("models", "pull").code == 2


def test_right_weights_are_told(cli: CommandLine) -> None:
    cli.api.models_verify = answering(Report())

    assert cli("models", "verify", "tiny").code == 0
    assert cli.out == "m.gguf  size and hash are right\n"


@pytest.mark.parametrize("extra", [[], ["--json"]])
def test_wrong_weights_end_with_3(cli: CommandLine, extra: list[str], tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(b"GGUF")
    checked = Checked(path=path, problem="wrong hash")
    cli.api.models_verify = answering(Report((checked,), ok=False))

    cli("models", "verify", "tiny", *extra)

    assert cli.code == 3
    assert "wrong hash" in cli.out
    assert "m.gguf" in cli.err
    assert not extra or json.loads(cli.out)["ok"] is False


def test_weights_that_were_never_fetched_are_missing_not_wrong(cli: CommandLine) -> None:
    cli.api.models_verify = answering(Report((Checked(problem="is not there"),), ok=False))

    assert cli("models", "verify", "tiny").code == 3
    assert "are not here" in cli.err
    assert "models pull tiny" in cli.err
