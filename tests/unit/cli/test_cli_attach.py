"""`attach`, `pause`, `unpause` and `runs rm`."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cli_fakes import CommandLine

from offline_judge.domain.events import AnyEvent, SampleFinished
from offline_judge.domain.judgment import Judgment, Outcome
from offline_judge.domain.news import News
from offline_judge.domain.progress import Progress, TokenDelta
from offline_judge.errors import RunNotFoundError

HOSTILE = "\x1b[2J\x1b]8;;http://x\x07"


class FakeWatch:
    run_id = "20260101-a"

    def __init__(self, news: list[News], end: type[BaseException] = StopIteration) -> None:
        self._news = news
        self._end = end

    def __enter__(self) -> FakeWatch:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def __iter__(self) -> Iterator[News]:
        yield from self._news
        if self._end is not StopIteration:
            raise self._end


@pytest.fixture
def cli(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> CommandLine:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OFFLINE_JUDGE_DATA_DIR", str(tmp_path / "data"))
    return CommandLine(monkeypatch, capsys)


def scored(name: str) -> AnyEvent:
    judgment = Judgment(verdict=True, probability=0.875)
    return SampleFinished(sample_id=name, outcome=Outcome.SCORED, judgment=judgment)


def lost(name: str) -> AnyEvent:
    return SampleFinished(sample_id=name, outcome=Outcome.UNSCORED, reason="truncated")


def test_ended_samples_are_lines_and_progress_is_narration(cli: CommandLine) -> None:
    progress = Progress(planned=3, finished=2, in_flight={"c": "verdict: writing, 3 tokens"})
    delta = TokenDelta(call=1, sample_id="c", lane=0, stage="verdict", at=0, text=f"It is{HOSTILE}")
    news = [
        News("phase", phase="load", detail="weights"),
        News("event", event=scored(f"a{HOSTILE}")),
        News("event", event=lost("b")),
        News("delta", delta=delta),
        News("progress", progress=progress),
    ]
    cli.api.watch = lambda *_: FakeWatch(news)
    cli("attach", "last")
    assert cli.code == 0
    first, second = cli.out.splitlines()
    assert first.endswith("true  0.88  scored")
    assert second == "b  -  -  unscored: truncated"
    assert "load: weights" in cli.err
    assert "2/3 done" in cli.err
    assert "runs show 20260101-a" in cli.err
    assert "\x1b" not in cli.out + cli.err


def test_each_event_is_a_line_of_json(cli: CommandLine) -> None:
    cli.api.watch = lambda *_: FakeWatch([News("event", event=scored("a"))])
    cli("attach", "last", "--json")
    assert json.loads(cli.out)["judgment"]["probability"] == 0.875


def test_leaving_is_told_and_stops_nothing(cli: CommandLine) -> None:
    cli.api.watch = lambda *_: FakeWatch([], KeyboardInterrupt)
    assert cli("attach", "last").code == 130
    assert "run 20260101-a goes on" in cli.err


def test_a_run_that_does_not_run_is_told(cli: CommandLine) -> None:
    def refused(*_: Any) -> FakeWatch:
        raise RunNotFoundError("Run x is not running.", remedy="offline-judge resume x")

    cli.api.watch = refused
    assert cli("attach", "x").code == 2
    assert "resume x" in cli.err


@pytest.mark.parametrize("command", ["pause", "unpause"])
def test_a_run_is_held_up_and_let_go_on(cli: CommandLine, command: str) -> None:
    asked: list[str] = []
    setattr(cli.api, command, lambda run_id, _settings: asked.append(run_id))
    cli(command, "last", "--json")
    assert (cli.code, asked) == (0, ["last"])
    assert json.loads(cli.out) == {"run": "last", "asked": command}


def test_a_run_is_deleted_after_a_yes(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    removed: list[str] = []
    cli.api.remove_run = lambda run_id, _settings: removed.append(run_id)
    assert cli("runs", "rm", "a", "b", "--yes").code == 0
    assert removed == ["a", "b"]
    for said, code in (("", 130), ("n\n", 130), ("y\n", 0)):
        monkeypatch.setattr(sys, "stdin", io.StringIO(said))
        assert cli("runs", "rm", "c").code == code
    assert removed == ["a", "b", "c"]
