from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cli_fakes import (
    HOSTILE,
    CommandLine,
    Listing,
    Row,
    answering,
    view,
)

from offline_judge import errors
from offline_judge.domain.judgment import Outcome
from offline_judge.settings import Settings


@pytest.fixture
def cli(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> CommandLine:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OFFLINE_JUDGE_DATA_DIR", str(tmp_path / "data"))
    return CommandLine(monkeypatch, capsys)


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

    written = (tmp_path / "rows.csv").read_text("utf-8-sig")
    rows = list(csv.DictReader(io.StringIO(written)))
    assert rows[0]["note"] == 'x,"y"\nz'
    assert rows[1]["extra"] == "\\ud800"
    assert rows[1]["verdict"] == ""
    assert list(tmp_path.glob(".*")) == []


def test_an_export_that_fails_leaves_the_old_file(cli: CommandLine, tmp_path: Path) -> None:
    def export_rows(*_: Any) -> Iterator[dict[str, Any]]:
        yield EXPORTED[0]
        raise errors.TraceError("damaged")

    cli.api.export_rows = export_rows
    (tmp_path / "rows").write_text("old")

    assert cli("runs", "export", "last", "--out", "rows").code == 1
    assert (tmp_path / "rows").read_text() == "old"
    assert list(tmp_path.glob(".*")) == []


def test_an_export_into_a_missing_folder_names_it(cli: CommandLine) -> None:
    exporting(cli)

    assert cli("runs", "export", "last", "--out", "no/rows").code == 1
    assert "no/rows" in cli.err


def test_an_export_below_a_file_is_an_error_and_no_crash(cli: CommandLine, tmp_path: Path) -> None:
    exporting(cli)
    (tmp_path / "file").touch()

    assert cli("runs", "export", "last", "--out", "file/rows").code == 1
    assert "Cannot write: Not a directory" in cli.err


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
