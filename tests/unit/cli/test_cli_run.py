from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cli_fakes import (
    CommandLine,
    Request,
    answering,
    view,
)

from offline_judge.domain.progress import Progress
from offline_judge.protocols import RunListener
from offline_judge.settings import Settings


@pytest.fixture
def cli(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> CommandLine:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OFFLINE_JUDGE_DATA_DIR", str(tmp_path / "data"))
    return CommandLine(monkeypatch, capsys)


@dataclass
class Seen:
    request: Request | None = None
    settings: Settings | None = None


@pytest.fixture
def seen(cli: CommandLine) -> Seen:
    seen = Seen()

    def run(request: Request, settings: Settings, listener: RunListener) -> Any:
        seen.request, seen.settings = request, settings
        listener.phase("load", "weights")
        listener.progress(Progress(planned=3, finished=3))
        return view()

    cli.api.run = run
    return seen


def test_run_hands_its_flags_over(cli: CommandLine, seen: Seen) -> None:
    cli(
        *("--data-dir", "elsewhere", "run", "sage", "--data", "d.jsonl", "--map", "a=b=question"),
        *("--limit", "5", "--minutes", "2.5", "--skip-bad", "-o", "rounds=2", "-o", "name=x=y"),
        *("--format", "nq-open", "--responses", "r.csv", "--candidate", "small"),
        *("-o", "fast=true", "--lanes", "2", "--seed", "7", "--no-cache", "--judge", "tiny"),
    )

    assert seen.request == Request(
        method="sage",
        data=Path("d.jsonl"),
        mapping={"a=b": "question"},
        skip_bad=True,
        limit=5,
        minutes=2.5,
        options={"rounds": 2, "name": "x=y", "fast": True},
        format="nq-open",
        responses=Path("r.csv"),
        candidate="small",
    )
    assert seen.settings is not None
    assert (seen.settings.lanes, seen.settings.seed, seen.settings.cache) == (2, 7, False)
    assert (seen.settings.judge, seen.settings.data_dir) == ("tiny", "elsewhere")
    assert seen.settings.origins["judge"] == "flag"


def test_flags_that_are_not_given_leave_settings_alone(cli: CommandLine, seen: Seen) -> None:
    cli("run", "sage", "--data", "d.jsonl")

    assert seen.settings is not None
    assert seen.settings.cache is True
    assert seen.settings.origins["cache"] == "default"


def test_run_ends_in_a_summary(cli: CommandLine, seen: Seen) -> None:
    cli("run", "sage", "--data", "d.jsonl")

    assert cli.code == 0
    assert "3 planned, 2 scored, 1 unscored" in cli.out
    assert "1 off-menu" in cli.out
    assert "1 true (50 %), 1 false (n = 2)" in cli.out
    assert "accuracy 0.50, Cohen's kappa undefined (n = 2, 1 labelled but unscored)" in cli.out
    assert "2.5 distinct queries a sample" in cli.out
    assert "offline-judge show 20260101-a q1" in cli.err


def test_json_of_a_run_is_one_document_and_nothing_else(cli: CommandLine, seen: Seen) -> None:
    cli("run", "sage", "--data", "d.jsonl", "--json")

    document = json.loads(cli.out)
    assert document["run"] == "20260101-a"
    assert document["summary"]["outcomes"] == {"scored": 2, "unscored": 1}
    assert "load: weights" in cli.err


def test_quiet_says_nothing_on_stderr(cli: CommandLine, seen: Seen) -> None:
    cli("run", "sage", "--data", "d.jsonl", "--quiet")

    assert cli.err == ""
    assert "3 planned" in cli.out


@pytest.mark.parametrize(
    ("status", "code"),
    [("completed", 0), ("limit", 0), ("drained", 130), ("cancelled", 130), ("failed", 1)],
)
def test_the_exit_code_says_how_a_run_ended(cli: CommandLine, status: str, code: int) -> None:
    cli.api.resume = answering(view(status))

    assert cli("resume", "last", "--json").code == code
    assert json.loads(cli.out)["summary"]["status"] == status


def test_a_run_that_is_not_done_says_how_to_go_on(cli: CommandLine) -> None:
    cli.api.resume = answering(view("drained", planned=9))

    assert "offline-judge resume 20260101-a" in cli("resume", "2026").err


@pytest.mark.parametrize(
    ("pair", "said"),
    [
        ("prompt", "--map column=field"),
        ("=question", "--map column=field"),
        ("prompt=", "--map column=field"),
        ("prompt=questoin", "--map prompt=question"),
        ("question=prompt", "The column comes first: --map prompt=question"),
        ("a=zzzz", "Fields: id, question, response, reference, label."),
    ],
)
def test_a_bad_map_says_how_to_write_it(cli: CommandLine, seen: Seen, pair: str, said: str) -> None:
    cli("run", "sage", "--data", "d.jsonl", "--map", pair)

    assert cli.code == 2
    assert said in cli.err
    assert f"--map {pair}" in cli.err
    assert seen.request is None


@pytest.mark.parametrize("second", ["prompt=response", "other=question"])
def test_a_name_is_mapped_once(cli: CommandLine, seen: Seen, second: str) -> None:
    cli("run", "sage", "--data", "d.jsonl", "--map", "prompt=question", "--map", second)

    assert cli.code == 2
    assert "mapped twice" in cli.err


@pytest.mark.parametrize(
    "arguments",
    [
        ["--limit", "0"],
        ["--minutes", "0"],
        ["--minutes", "nan"],
        ["--minutes", "inf"],
        ["--lanes", "0"],
        ["--seed", "-1"],
        ["-o", "rounds"],
        ["-o", "=2"],
        ["-o", "a=1", "-o", "a=2"],
    ],
)
def test_a_value_out_of_range_is_a_usage_error(
    cli: CommandLine, seen: Seen, arguments: list[str]
) -> None:
    assert cli("run", "sage", "--data", "d.jsonl", *arguments).code == 2
    assert seen.request is None
    assert cli.out == ""


def test_an_option_that_is_no_json_number_stays_text(cli: CommandLine, seen: Seen) -> None:
    cli("run", "sage", "--data", "d.jsonl", "-o", "x=NaN", "-o", "y=[1]", "-o", "z=007")

    assert seen.request is not None
    assert seen.request.options == {"x": "NaN", "y": "[1]", "z": "007"}


def test_the_help_names_every_form_of_a_public_set(cli: CommandLine) -> None:
    from offline_judge.registry import FORMS

    said = cli("run", "--help").out
    assert [name for name in FORMS.names() if name not in said] == []
