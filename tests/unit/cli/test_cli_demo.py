from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cli_fakes import (
    HOSTILE,
    CommandLine,
    Row,
    answering,
    manifest,
    summary,
)

from offline_judge.domain.judgment import Outcome
from offline_judge.protocols import RunListener
from offline_judge.settings import Settings


@pytest.fixture
def cli(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> CommandLine:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OFFLINE_JUDGE_DATA_DIR", str(tmp_path / "data"))
    return CommandLine(monkeypatch, capsys)


@dataclass(frozen=True)
class DemoRow:
    id: str
    question: str
    response: str
    label: bool | None
    judged: dict[str, Row]


@dataclass(frozen=True)
class Demo:
    rows: tuple[DemoRow, ...]
    runs: tuple[Any, ...]


@dataclass(frozen=True)
class Judged:
    manifest: Any
    summary: Any


def demonstration() -> Demo:
    judged = {
        "direct": Row("x", verdict=True, probability=0.9, searches=0),
        "sage": Row("x", verdict=None, probability=None, outcome=Outcome.UNSCORED, reason="empty"),
    }
    row = DemoRow("x", HOSTILE, "long " * 40, False, judged)
    runs = tuple(Judged(manifest(f"run-{name}", name), summary()) for name in judged)
    return Demo((row,), runs)


def test_the_demo_shows_both_verdicts_side_by_side(cli: CommandLine) -> None:
    cli.api.demo = answering(demonstration())

    cli("demo")

    header, line = cli.out.splitlines()[:2]
    assert header.split() == ["question", "response", "label", "direct", "sage", "searches"]
    assert "false  true  0.90  unscored: empty" in line
    assert line.endswith(" 3")
    assert "\x1b" not in cli.out
    assert "offline-judge show run-sage x" in cli.err


def test_the_demo_as_json(cli: CommandLine) -> None:
    cli.api.demo = answering(demonstration())

    document = json.loads(cli("demo", "--json").out)

    assert document["rows"][0]["judged"]["direct"]["verdict"] is True
    assert document["runs"]["sage"]["run"] == "run-sage"


def test_the_small_demo_takes_the_smaller_judge(cli: CommandLine) -> None:
    judges: list[str] = []

    def demo(settings: Settings, listener: RunListener) -> Demo:
        judges.append(settings.judge)
        return demonstration()

    cli.api.demo = demo
    cli("demo", "--small")

    assert judges == ["qwen2.5-coder-0.5b-instruct"]


def test_the_small_demo_and_a_judge_exclude_one_another(cli: CommandLine) -> None:
    assert cli("demo", "--small", "--judge", "x").code == 2
