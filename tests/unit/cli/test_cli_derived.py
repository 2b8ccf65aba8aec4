"""`evidence add`, and how a derived run is shown beside the run it comes from."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from cli_fakes import CommandLine, Listing, Row, View, answering, manifest, one_sample, summary

from offline_judge.cli.lazy import LazyCommand
from offline_judge.cli.main import root
from offline_judge.domain.judgment import Outcome
from offline_judge.domain.run import Parent

PARENT = Parent(run_id="20250101-p", sample_id="q1", passages=("own:1",))
BEFORE = Row("q1", verdict=False)
ORIGIN = "20250101-p, sample q1, with 1 passage of your own"


class Adding:
    """Stands for `api.evidence_add`, and remembers what it was given."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.given: list[Any] = []

    def __call__(self, *arguments: Any, **_: Any) -> View:
        self.given = list(arguments)
        return self.view


def derived(status: str = "completed", before: Row | None = BEFORE) -> View:
    rows = (Row("q1", probability=0.9),)
    return View(manifest(parent=PARENT), summary(status), rows, before)


@pytest.fixture
def cli(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> CommandLine:
    from offline_judge.api.views import OwnPassage

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OFFLINE_JUDGE_DATA_DIR", str(tmp_path / "data"))
    for name in ("add", "drop"):
        target = f"offline_judge.cli.evidence_change:{name}"
        monkeypatch.setitem(root.lazy, name, LazyCommand(target, ""))
    line = CommandLine(monkeypatch, capsys)
    line.api.OwnPassage = OwnPassage
    line.api.evidence_add = Adding(derived())
    return line


def test_verdicts_before_and_now_are_told(cli: CommandLine) -> None:
    cli("add", "last", "q1", "--text", "It is Astana.", "--title", "T", "--date", "2025")
    assert cli.code == 0
    told = dict(line.split("  ", 1) for line in cli.out.splitlines())
    assert told["derived from"].strip() == ORIGIN
    assert told["verdict before"].strip() == "false (probability of true 0.75)"
    assert told["verdict now"].strip() == "true (probability of true 0.90)"
    run_id, sample_id, passage = cli.api.evidence_add.given[:3]
    assert (run_id, sample_id) == ("last", "q1")
    assert (passage.text, passage.title, passage.url, passage.date) == (
        "It is Astana.",
        "T",
        "",
        "2025",
    )


def test_what_a_sample_is_judged_without_is_told(cli: CommandLine) -> None:
    parent = Parent(run_id="20250101-p", sample_id="q1", without=("d1#0", "d2#0"))
    rows = (Row("q1", probability=0.9),)
    cli.api.evidence_drop = Adding(
        View(manifest(parent=parent), summary("completed"), rows, BEFORE)
    )
    cli("drop", "last", "q1", "d2#0")
    assert cli.code == 0
    assert cli.api.evidence_drop.given[:3] == ["last", "q1", "d2#0"]
    assert "20250101-p, sample q1, without d1#0, d2#0" in cli.out
    assert "verdict before" in cli.out


def test_as_json(cli: CommandLine) -> None:
    found = json.loads(cli("add", "last", "q1", "--text", "It is Astana.", "--json").out)
    assert found["parent"] == PARENT.model_dump(mode="json")
    assert found["before"]["verdict"] is False
    assert found["row"]["verdict"] is True


def test_a_file_or_stdin_holds_the_passage(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "p.txt").write_bytes("\ufeffÉ assim.".encode())
    cli("add", "last", "q1", "--file", "p.txt")
    assert cli.api.evidence_add.given[2].text == "É assim."
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("日本".encode())))
    cli("add", "last", "q1", "--file", "-")
    assert cli.api.evidence_add.given[2].text == "日本"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "--text or from --file"),
        (["--text", "x", "--file", "y"], "one of them"),
        (["--file", "absent.txt"], "absent.txt"),
        (["--file", "latin.txt"], "UTF-8"),
    ],
)
def test_a_passage_that_cannot_be_had_is_told(
    cli: CommandLine, tmp_path: Path, arguments: list[str], told: str
) -> None:
    (tmp_path / "latin.txt").write_bytes("São".encode("latin-1"))
    assert cli("add", "last", "q1", *arguments).code == 2
    assert told in cli.err
    assert cli.api.evidence_add.given == []


def test_an_interrupted_one_ends_with_130_and_says_so(cli: CommandLine) -> None:
    cli.api.evidence_add = Adding(
        View(manifest(parent=PARENT), summary("cancelled"), (), Row("q1"))
    )
    assert cli("add", "last", "q1", "--text", "x").code == 130
    assert "not judged yet" in cli.out


def test_a_derived_run_says_whose_sample_it_judges(cli: CommandLine) -> None:
    cli.api.load_run = answering(derived())
    out = cli("runs", "show", "last").out
    assert ORIGIN in out
    assert "verdict before" in out
    cli.api.load_run = answering(derived(before=None))
    assert "cannot be read any more" in cli("runs", "show", "last").out


def test_only_a_list_with_derived_runs_has_a_column_for_them(cli: CommandLine) -> None:
    cli.api.list_runs = answering([Listing(), Listing(parent=PARENT)])
    header, plain, told = cli("runs", "list").out.splitlines()
    assert header.endswith("derived from")
    assert told.endswith(ORIGIN)
    assert plain.endswith("3/3")
    entries = [json.loads(line) for line in cli("runs", "list", "--json").out.splitlines()]
    assert [entry["parent"] for entry in entries] == [None, PARENT.model_dump(mode="json")]
    cli.api.list_runs = answering([Listing()])
    assert "derived" not in cli("runs", "list").out


def test_a_sample_of_a_derived_run_is_shown_with_both_verdicts(cli: CommandLine) -> None:
    found = one_sample()
    object.__setattr__(found, "parent", PARENT)
    object.__setattr__(found, "before", Row("q1", verdict=False))
    cli.api.show = answering(found)
    lines = cli("show", "last", "q1").out.splitlines()
    assert lines[0] == f"derived from run {ORIGIN}"
    assert lines[-2].startswith("verdict before  false")
    assert lines[-1].startswith("verdict now     true")


def test_a_reason_that_repeats_the_outcome_is_not_said_twice(cli: CommandLine) -> None:
    row = Row("q1", verdict=None, probability=None, outcome=Outcome.CANCELLED, reason="cancelled")
    cli.api.load_run = answering(View(manifest(), summary("cancelled"), (row,)))
    out = cli("runs", "show", "last").out
    assert "cancelled: cancelled" not in out
    assert "cancelled" in out
