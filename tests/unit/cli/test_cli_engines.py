"""Flags of engines and servers reach the settings, and mistakes end with the right code."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest

from offline_judge.cli.main import main
from offline_judge.cli.session import Session, judge_options, output_options

ROW = {"id": "a", "question": "Where?", "response": "There."}


def code_of(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    return int(ended.value.code or 0)


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    for name in ("DATA", "CACHE", "MODELS"):
        monkeypatch.setenv(f"OFFLINE_JUDGE_{name}_DIR", str(tmp_path / name))
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(ROW), "utf-8")
    return str(path)


def test_judges_that_are_named_one_by_one_come_together(monkeypatch: pytest.MonkeyPatch) -> None:
    @click.command()
    @judge_options
    @output_options
    def command() -> None:
        pass

    session = Session()
    names = ["vllm:m@http://127.0.0.1:1", "vllm:m@http://127.0.0.1:2"]
    flags = ["--judge", names[0], "--judge", names[1], "--thinking", "64", "--engine", "vllm"]
    command.main(flags, obj=session, standalone_mode=False)
    assert session.flags["judge"] == ", ".join(names)
    assert session.flags["thinking_tokens"] == 64
    assert session.flags["engine"] == "vllm"


@pytest.mark.parametrize(
    ("flags", "code", "words"),
    [
        (("--judge", "vllm:m@http://10.0.0.2:8000"), 2, "--allow-remote 10.0.0.2"),
        (("--judge", "openai:m"), 2, "--base-url"),
        (("--judge", "ollama:m@http://127.0.0.1:9"), 4, "Nothing answers"),
        (("--engine", "llama-cuda", "--judge", "smollm2-135m-instruct"), 3, "engines install"),
        (("--engine", "llama-tpu", "--judge", "smollm2-135m-instruct"), 2, "Known: auto"),
    ],
)
def test_what_cannot_judge_ends_with_its_code_and_what_to_do(
    data: str, capsys: pytest.CaptureFixture[str], flags: tuple[str, ...], code: int, words: str
) -> None:
    assert code_of("run", "direct", "--data", data, *flags) == code
    assert words in capsys.readouterr().err


def test_engines_are_listed_and_an_unknown_one_is_refused(
    data: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert code_of("engines", "list", "--json") == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {row["name"] for row in rows} >= {"llama-cuda", "vllm", "vllm-cpu"}
    assert {row["state"] for row in rows} == {"absent"}
    assert code_of("engines", "show", "llama-cuda") == 0
    assert code_of("engines", "rm", "vllm") == 3
    assert code_of("engines", "install", "llama-tpu") == 2
