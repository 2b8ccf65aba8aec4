from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cli_fakes import (
    HOSTILE,
    CommandLine,
    Options,
    answering,
    one_sample,
)

from offline_judge.protocols import RunListener


@pytest.fixture
def cli(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> CommandLine:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OFFLINE_JUDGE_DATA_DIR", str(tmp_path / "data"))
    return CommandLine(monkeypatch, capsys)


def ask_that_tells(text: str, **reading: Any) -> Any:
    def ask(*_: Any, listener: RunListener, **__: Any) -> Any:
        sample = one_sample(text, **reading)
        listener.phase("load")
        for event in sample.events:
            listener.event(event)
        return sample

    return ask


def test_ask_writes_steps_as_they_happen(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr("offline_judge.cli.output.text", lambda line, style: told.append(line))

    def ask(*_: Any, listener: RunListener, **__: Any) -> Any:
        sample = one_sample()
        listener.event(sample.events[0])
        assert any("question" in line for line in told)
        assert not any("verdict" in line for line in told)
        listener.event(sample.events[1])
        return sample

    cli.api.ask = ask

    assert cli("ask", "Q", "R").code == 0
    assert any(line.startswith("verdict: true") for line in told)


def test_ask_passes_its_options_on(cli: CommandLine) -> None:
    given: dict[str, Any] = {}

    def ask(question: str, response: str, **rest: Any) -> Any:
        given.update(rest, question=question, response=response)
        return one_sample()

    cli.api.ask = ask
    cli("ask", "Q", "R", "--method", "direct", "-o", "a=1", "--calibration", "c.json")

    assert (given["question"], given["response"], given["method"]) == ("Q", "R", "direct")
    assert given["options"] == Options({"a": 1}, Path("c.json"))


def test_ask_tells_both_readings(cli: CommandLine) -> None:
    reading = {"calibrated_verdict": False, "calibrated_probability": 0.41}
    cli.api.ask = ask_that_tells("Astana", **reading)

    assert cli("ask", "Q", "R", "--calibration", "c.json").code == 0
    assert "verdict: true (probability of true 0.75" in cli.out
    assert "calibrated: false (probability of true 0.41)" in cli.out


def test_json_of_ask_is_one_document_and_nothing_else(cli: CommandLine) -> None:
    cli.api.ask = ask_that_tells(HOSTILE)

    document = json.loads(cli("ask", "Q", "R", "--json").out)

    assert document["sample"]["response"] == HOSTILE
    assert [event["event"] for event in document["events"]] == ["sample_started", "sample_finished"]


@pytest.mark.parametrize("extra", [[], ["--json"]])
@pytest.mark.parametrize("command", ["ask", "show"])
def test_hostile_text_reaches_no_terminal(cli: CommandLine, command: str, extra: list[str]) -> None:
    cli.api.ask = ask_that_tells(HOSTILE)
    cli.api.show = answering(one_sample(HOSTILE))

    cli(command, "last", "q1", *extra)

    assert cli.code == 0
    assert "\x1b" not in cli.out + cli.err
    assert "\u202e" not in cli.out + cli.err
    assert "[red]日本" in cli.out


def test_a_closed_stdout_ends_ask_quietly_after_the_run(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    finished = []

    def broken(line: str, style: str) -> None:
        raise BrokenPipeError

    def ask(*_: Any, listener: RunListener, **__: Any) -> Any:
        for event in one_sample().events:
            listener.event(event)
        finished.append(True)
        return one_sample()

    monkeypatch.setattr("offline_judge.cli.output.text", broken)
    monkeypatch.setattr("offline_judge.cli.main._reader_is_gone", lambda: True)
    cli.api.ask = ask

    assert cli("ask", "Q", "R").code == 0
    assert finished == [True]
    assert "error" not in cli.err
