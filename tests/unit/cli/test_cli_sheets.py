"""CSV for spreadsheets: marked as UTF-8, and nothing in it is computed."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cli_fakes import CommandLine

from offline_judge.cli.sheets import Sheet


def _cells(*values: Any) -> tuple[list[str], int]:
    sheet = Sheet()
    text = "".join(sheet.pieces([{"id": n, "cell": value} for n, value in enumerate(values)]))
    return [row["cell"] for row in csv.DictReader(io.StringIO(text))], sheet.defused


@pytest.mark.parametrize(
    "text", ["=1+1", "+SUM(A1)", "-2+3", "@x", "\t=1", "\uff1d1+1", "=cmd|' /C calc'!A0"]
)
def test_a_formula_becomes_text(text: str) -> None:
    assert _cells(text) == ([f"'{text}"], 1)


@pytest.mark.parametrize("text", ["-5", "+3.5", "-1,5", "1e-3", "a=b", "It is -5.", "'=1", "-40%"])
def test_numbers_and_other_texts_stay(text: str) -> None:
    assert _cells(text) == ([text], 0)


def test_numbers_of_the_run_stay() -> None:
    assert _cells(-0.5, None, True) == (["-0.5", "", "True"], 0)


def test_the_name_of_a_column_is_no_formula_either() -> None:
    assert "".join(Sheet().pieces([{"=1+1": 2}])).startswith("'=1+1")


@pytest.fixture
def cli(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> CommandLine:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OFFLINE_JUDGE_DATA_DIR", str(tmp_path / "data"))
    command = CommandLine(monkeypatch, capsys)

    def export_rows(*_: Any) -> Iterator[dict[str, Any]]:
        yield {"id": "a", "response": "=1+1"}
        yield {"id": "b", "response": "São Tomé, 東京"}

    command.api.export_rows = export_rows
    return command


def test_a_file_is_marked_and_stdout_is_not(cli: CommandLine, tmp_path: Path) -> None:
    cli("runs", "export", "last", "--format", "csv", "--out", "rows.csv")
    written = (tmp_path / "rows.csv").read_bytes()
    assert written.startswith(b"\xef\xbb\xbfid,")
    assert "São Tomé, 東京".encode() in written
    assert "apostrophe" in cli.err
    assert cli("runs", "export", "last", "--format", "csv").out.startswith("id,")


def test_json_lines_are_exact(cli: CommandLine) -> None:
    assert '"=1+1"' in cli("runs", "export", "last").out
    assert "apostrophe" not in cli.err
