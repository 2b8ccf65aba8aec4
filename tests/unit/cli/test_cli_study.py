"""`study sage` and `runs show --costs` on the command line."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from cli_fakes import CommandLine, answering

from offline_judge.domain.costs import RunCosts, StageCost
from offline_judge.errors import StorageError
from offline_judge.studies.report import About, StudyReport


@dataclass(frozen=True)
class Request:
    """Takes what the command line passes on."""

    values: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class View:
    report: StudyReport
    markdown: str = "# Study\n"
    files: tuple[Path, ...] = ()
    problem: str = ""
    failure: StorageError | None = None


def view(status: str = "completed", **more: Any) -> View:
    about = About(data="d.jsonl", status=status)
    report = StudyReport(about=about, main="sage", samples=3, questions=2, left_out=0)
    return View(report, **more)


@pytest.fixture
def cli(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> CommandLine:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OFFLINE_JUDGE_DATA_DIR", str(tmp_path / "data"))
    line = CommandLine(monkeypatch, capsys)
    line.api.StudyRequest = lambda **values: Request(values)
    return line


def test_a_study_takes_its_options_and_prints_the_report(cli: CommandLine) -> None:
    seen: list[Request] = []

    def study_sage(request: Request, *_: object) -> View:
        seen.append(request)
        return view()

    cli.api.study_sage = study_sage
    options = (
        "--data d.jsonl --conditions direct,sage --minutes 5 --threshold-from s:60 -o results=5"
    )
    cli("study", "sage", *options.split(), "--with", "x=sage:rounds=1")
    assert (cli.code, cli.out) == (0, "# Study\n")
    values = seen[0].values
    assert values["data"] == Path("d.jsonl")
    assert values["conditions"] == ("direct", "sage")
    assert values["more"] == ("x=sage:rounds=1",)
    assert values["options"] == {"results": 5}
    assert (values["minutes"], values["threshold_from"]) == (5.0, "s:60")


def test_the_report_as_json_is_one_document(cli: CommandLine) -> None:
    cli.api.study_sage = answering(view(files=(Path("out/report.md"),)))
    document = json.loads(cli("study", "sage", "--data", "d.jsonl", "--json").out)
    assert document["report"]["samples"] == 3
    assert document["files"] == ["out/report.md"]


def test_a_stopped_study_ends_with_the_code_of_an_interrupt(cli: CommandLine) -> None:
    cli.api.study_sage = answering(view("stopped"))
    cli("study", "sage", "--data", "d.jsonl")
    assert cli.code == 130
    assert cli.out == "# Study\n"
    assert "same command goes on" in cli.err


def test_a_plot_that_cannot_be_drawn_is_a_warning(cli: CommandLine) -> None:
    cli.api.study_sage = answering(view(problem="no matplotlib"))
    assert cli("study", "sage", "--data", "d.jsonl").code == 0
    assert "warning: no matplotlib" in cli.err


@pytest.mark.parametrize(
    "given", [("--data", "d.jsonl", "--out", "o"), ("--from-scores", "old", "--out", "o")]
)
def test_a_report_that_cannot_be_written_is_printed_and_then_an_error(
    cli: CommandLine, given: tuple[str, ...]
) -> None:
    failure = StorageError("Cannot write: No space left on device", where="o")
    cli.api.study_sage = cli.api.study_report = answering(view("stopped", failure=failure))
    cli("study", "sage", *given)
    assert (cli.code, cli.out) == (1, "# Study\n")
    assert "error: Cannot write: No space left on device" in cli.err


def test_scores_are_reported_again_without_judging(cli: CommandLine) -> None:
    calls: list[tuple[Any, dict[str, Any]]] = []

    def study_report(path: Path, **more: Any) -> View:
        calls.append((path, more))
        return view()

    cli.api.study_report = study_report
    cli("study", "sage", "--from-scores", "old", "--threshold-from", "other:20")
    assert (cli.code, cli.out) == (0, "# Study\n")
    assert calls == [(Path("old"), {"threshold_from": "other:20", "out": None})]


@pytest.mark.parametrize("option", [("--data", "d.jsonl"), ("--gold", "g"), ("--minutes", "3")])
def test_reporting_again_takes_nothing_that_only_judging_needs(
    cli: CommandLine, option: tuple[str, str]
) -> None:
    cli("study", "sage", "--from-scores", "old", *option)
    assert cli.code == 2
    assert option[0] in cli.err


def test_a_study_needs_data_or_scores(cli: CommandLine) -> None:
    assert cli("study", "sage").code == 2
    assert "--data" in cli.err


COSTS = RunCosts(
    samples=4,
    stages=(
        StageCost(stage="query", calls=4, prompt_tokens=4000, read_anew=400, written=40, read_s=6),
        StageCost(stage="verdict", calls=4, reused=1, prompt_tokens=800, read_anew=200, write_s=2),
    ),
    searches=1,
    search_s=1.0,
    seconds=12.0,
)


def test_the_costs_of_a_run_are_shown_by_stage(cli: CommandLine) -> None:
    cli.api.run_costs = answering(COSTS)
    lines = cli("runs", "show", "last", "--costs").out.splitlines()
    assert lines[1].split()[:5] == ["query", "4", "0", "4,000", "400"]
    assert lines[1].split()[-1] == "1.50"
    assert lines[3].split()[:5] == ["total", "8", "1", "4,800", "600"]
    assert any("3.00 s a sample" in line for line in lines)
    assert any("neither engine nor search  3.0 s" in line for line in lines)


def test_the_costs_of_a_run_as_json(cli: CommandLine) -> None:
    cli.api.run_costs = answering(COSTS)
    document = json.loads(cli("runs", "show", "last", "--costs", "--json").out)
    assert document["total"]["read_anew"] == 600
    assert document["rest_s"] == 3.0
    assert [stage["stage"] for stage in document["costs"]["stages"]] == ["query", "verdict"]


def test_a_run_without_samples_has_no_cost_a_sample(cli: CommandLine) -> None:
    cli.api.run_costs = answering(RunCosts())
    cli("runs", "show", "last", "--costs")
    assert cli.code == 0
    assert cli.out.splitlines()[1].split()[0] == "total"
