from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from cli_fakes import (
    HOSTILE,
    CommandLine,
    Row,
    View,
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


def demonstration() -> tuple[View, ...]:
    direct = Row("x", HOSTILE, "long " * 40, False, verdict=True, probability=0.9, searches=0)
    sage = replace(
        direct, verdict=None, probability=None, outcome=Outcome.UNSCORED, reason="empty", searches=3
    )
    return (
        View(manifest("run-direct", "direct"), summary(), (direct, Row("y"))),
        View(manifest("run-sage", "sage"), summary("drained"), (sage,)),
    )


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

    def demo(settings: Settings, listener: RunListener) -> tuple[View, ...]:
        judges.append(settings.judge)
        return demonstration()

    cli.api.demo = demo
    cli("demo", "--small")

    assert judges == ["qwen2.5-coder-0.5b-instruct"]


def test_the_small_demo_and_a_judge_exclude_one_another(cli: CommandLine) -> None:
    assert cli("demo", "--small", "--judge", "x").code == 2


def test_a_sample_that_one_method_has_not_reached_is_shown_with_a_dash(cli: CommandLine) -> None:
    cli.api.demo = answering(demonstration())

    line = cli("demo").out.splitlines()[2]

    assert line.split()[-3:] == ["0.75", "-", "3"]
