from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cli_fakes import (
    HOSTILE,
    CommandLine,
    Listing,
    Request,
    Row,
    answering,
    manifest,
    one_sample,
    summary,
    view,
)

from offline_judge import errors
from offline_judge.domain.judgment import Outcome
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


# run


def test_run_hands_its_flags_over(cli: CommandLine, seen: Seen) -> None:
    cli(
        *("--data-dir", "elsewhere", "run", "sage", "--data", "d.jsonl", "--map", "a=b=question"),
        *("--limit", "5", "--minutes", "2.5", "--skip-bad", "-o", "rounds=2", "-o", "name=x=y"),
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


# ask and show


def ask_that_tells(text: str) -> Any:
    def ask(*_: Any, listener: RunListener, **__: Any) -> Any:
        sample = one_sample(text)
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
    cli("ask", "Q", "R", "--method", "direct", "-o", "a=1")

    assert (given["question"], given["response"]) == ("Q", "R")
    assert (given["method"], given["options"]) == ("direct", {"a": 1})


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


# runs


def test_runs_are_listed(cli: CommandLine) -> None:
    cli.api.list_runs = answering([Listing(), Listing(status="interrupted")])

    lines = cli("runs", "list").out.splitlines()

    assert lines[0].split() == ["id", "started", "method", "judge", "status", "done"]
    assert lines[2].split()[2:] == ["sage", "tiny", "interrupted", "3/3"]


def test_listed_runs_as_json_lines(cli: CommandLine) -> None:
    cli.api.list_runs = answering([Listing(), Listing()])

    entries = [json.loads(line) for line in cli("runs", "list", "--json").out.splitlines()]

    assert len(entries) == 2
    assert {"id", "started", "method", "judge"} <= entries[0].keys()


def test_no_runs_yet_is_no_error(cli: CommandLine) -> None:
    cli.api.list_runs = answering([])

    assert (cli("runs", "list").code, cli.out) == (0, "")
    assert "no runs yet" in cli.err


def test_a_run_is_shown_with_its_first_rows(cli: CommandLine) -> None:
    rows = [Row(f"q{n}", question=HOSTILE) for n in range(25)]
    rows[1] = Row("q1", verdict=None, probability=None, outcome=Outcome.UNSCORED, reason="empty")
    cli.api.load_run = answering(view(rows=rows))

    cli("runs", "show", "last")

    assert "leaves this machine  nothing" in cli.out
    assert "unscored: empty" in cli.out
    assert "q19" in cli.out
    assert "q20" not in cli.out
    assert "5 more rows" in cli.err
    assert "\x1b" not in cli.out


EXPORTED: list[dict[str, Any]] = [
    {"id": "a", "verdict": True, "probability": 0.5, "label": None, "note": 'x,"y"\nz'},
    {"id": "b", "verdict": None, "probability": None, "label": False, "extra": "\ud800"},
]


def exporting(cli: CommandLine) -> None:
    def export_rows(*_: Any) -> Iterator[dict[str, Any]]:
        yield from EXPORTED

    cli.api.export_rows = export_rows


def test_rows_are_exported_as_json_lines(cli: CommandLine) -> None:
    exporting(cli)

    lines = cli("runs", "export", "last", "--format", "jsonl").out.splitlines()

    assert [json.loads(line) for line in lines] == EXPORTED


def test_rows_are_exported_as_csv_with_the_columns_of_all(cli: CommandLine, tmp_path: Path) -> None:
    exporting(cli)

    cli("runs", "export", "last", "--format", "csv", "--out", "rows.csv")

    written = (tmp_path / "rows.csv").read_text("utf-8")
    rows = list(csv.DictReader(io.StringIO(written)))
    assert rows[0]["note"] == 'x,"y"\nz'
    assert rows[1]["extra"] == "\\ud800"
    assert rows[1]["verdict"] == ""
    assert list(tmp_path.glob(".rows.csv*")) == []


def test_an_export_that_fails_leaves_the_old_file(cli: CommandLine, tmp_path: Path) -> None:
    def export_rows(*_: Any) -> Iterator[dict[str, Any]]:
        yield EXPORTED[0]
        raise errors.TraceError("damaged")

    cli.api.export_rows = export_rows
    (tmp_path / "rows").write_text("old")

    assert cli("runs", "export", "last", "--out", "rows").code == 1
    assert (tmp_path / "rows").read_text() == "old"
    assert len(list(tmp_path.glob("*rows*"))) == 1


def test_an_export_into_a_missing_folder_names_it(cli: CommandLine) -> None:
    exporting(cli)

    assert cli("runs", "export", "last", "--out", "no/rows").code == 1
    assert "no/rows" in cli.err


def test_json_and_csv_on_stdout_exclude_one_another(cli: CommandLine) -> None:
    exporting(cli)

    assert cli("runs", "export", "last", "--format", "csv", "--json").code == 2


def test_cancel_asks_the_run(cli: CommandLine) -> None:
    asked: list[tuple[str, bool]] = []

    def cancel(run_id: str, settings: Settings, *, drain: bool = False) -> None:
        asked.append((run_id, drain))

    cli.api.cancel = cancel
    cli("cancel", "last", "--drain", "--json")

    assert asked == [("last", True)]
    assert json.loads(cli.out) == {"run": "last", "asked": "drain"}


# demo


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
