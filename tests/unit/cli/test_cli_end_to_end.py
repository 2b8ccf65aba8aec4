"""The command line over the real API with the scripted judge."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from offline_judge.cli.main import main

HOSTILE = "\x1b[2J[red]日本"


class Program:
    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self.code: int | str | None = None
        self.out = self.err = ""

    def __call__(self, *arguments: str) -> Program:
        with pytest.raises(SystemExit) as end:
            main(arguments)
        self.code = end.value.code
        self.out, self.err = self._capsys.readouterr()
        return self

    def json(self, *arguments: str) -> Any:
        self(*arguments, "--json")
        assert self.code == 0, self.err
        return json.loads(self.out, parse_constant=pytest.fail)


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OFFLINE_JUDGE_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("OFFLINE_JUDGE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("OFFLINE_JUDGE_JUDGE", "scripted")
    rows = [{"id": f"q{n}", "prompt": "Q", "response": HOSTILE, "label": True} for n in range(3)]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (tmp_path / "rows.jsonl").write_text(text, "utf-8")
    return tmp_path


@pytest.fixture
def program(folder: Path, capsys: pytest.CaptureFixture[str]) -> Program:
    return Program(capsys)


RUN = ("run", "direct", "--data", "rows.jsonl", "--map", "prompt=question")


def test_a_run_can_be_listed_shown_exported_and_resumed(program: Program) -> None:
    ran = program.json(*RUN)
    assert ran["summary"]["outcomes"] == {"scored": 3}

    listed = program.json("runs", "list")
    assert listed["id"] == ran["run"]

    shown = program.json("show", "last", "q1")
    assert shown["sample"]["response"] == HOSTILE

    program("runs", "export", "last", "--format", "csv")
    exported = list(csv.DictReader(io.StringIO(program.out)))
    assert [row["id"] for row in exported] == ["q0", "q1", "q2"]
    assert {"label", "verdict", "probability", "evidence_state", "outcome"} <= exported[0].keys()

    assert program.json("resume", ran["run"][:-2])["summary"]["outcomes"] == {"scored": 3}


def test_hostile_text_of_a_run_reaches_no_terminal(program: Program) -> None:
    program(*RUN)
    for command in (["show", "last", "q0"], ["show", "last", "q0", "--prompts"]):
        program(*command)
        assert program.code == 0
        assert "\x1b" not in program.out + program.err
        assert "␛[2J[red]日本" in program.out


def test_prompts_of_a_call_come_with_their_token_counts(program: Program) -> None:
    program(*RUN)

    assert "prompt tokens" in program("show", "last", "q0").out


def test_a_run_that_does_not_exist_is_told_with_what_may_be_meant(program: Program) -> None:
    run_id = program.json(*RUN)["run"]
    typo = run_id[:-1] + ("a" if run_id[-1] != "a" else "b")

    program("show", typo, "q0")

    assert program.code == 2
    assert run_id in program.err


def test_a_sample_that_does_not_exist_is_told_with_what_may_be_meant(program: Program) -> None:
    program(*RUN)

    assert program("show", "last", "q00").code == 2
    assert "q0" in program.err


def test_a_method_that_does_not_exist_is_told_with_what_may_be_meant(program: Program) -> None:
    assert program("run", "dirct", *RUN[2:]).code == 2
    assert "`direct`" in program.err


def test_a_judge_without_weights_ends_with_3_and_the_command_that_helps(program: Program) -> None:
    program(*RUN, "--judge", "smollm2-135m-instruct")

    assert program.code == 3
    assert "offline-judge models pull smollm2-135m-instruct" in program.err


def test_ask_shows_verdict_and_rationale(program: Program) -> None:
    program("ask", "Q", HOSTILE, "--method", "direct")

    assert program.code == 0
    assert "verdict: " in program.out
    assert "\x1b" not in program.out
    assert "--prompts" in program.err


def test_the_first_interrupt_drains_and_ends_with_130(folder: Path) -> None:
    (folder / "slow.json").write_text('{"latency_s": 0.05}')
    run = subprocess.Popen(
        [sys.executable, "-m", "offline_judge", *RUN, "--judge", "scripted:slow.json", "--json"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
    )
    try:
        assert run.stderr is not None
        for line in run.stderr:
            if "samples to judge" in line:
                run.send_signal(signal.SIGINT)
                break
        out, err = run.communicate(timeout=60)
    finally:
        run.kill()
        run.wait()

    assert run.returncode == 130
    assert "press Ctrl-C again to cancel" in err
    assert "offline-judge resume" in err
    assert json.loads(out)["summary"]["status"] == "drained"
