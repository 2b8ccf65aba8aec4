from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from offline_judge.cli import output
from offline_judge.domain.sample import Sample
from offline_judge.errors import StorageError

COLUMNS = [output.Column("name"), output.Column("n", right=True), output.Column("end")]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def open_terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[[], Terminal]:
    """Pytest swaps stdout between set-up and test, so a test opens its terminal itself."""

    def replace() -> Terminal:
        stream = Terminal()
        monkeypatch.setattr(sys, "stdout", stream)
        monkeypatch.setenv("COLUMNS", "80")
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.delenv("NO_COLOR", raising=False)
        return stream

    return replace


def test_a_piped_table_aligns_wide_characters(capsys: pytest.CaptureFixture[str]) -> None:
    output.table(COLUMNS, [["日本", "5", "x"], ["ab", "10", "y"]])

    assert capsys.readouterr().out == "name   n  end\n日本   5  x\nab    10  y\n"


def test_a_piped_table_keeps_long_cells_whole(capsys: pytest.CaptureFixture[str]) -> None:
    output.table(COLUMNS, [["x" * 500, "1", "y"]])

    assert "x" * 500 in capsys.readouterr().out


@pytest.mark.parametrize("cell", ["[red]x[/red]", "[/]", ":smile:", "[link=http://x]"])
def test_markup_in_a_terminal_table_is_text(
    open_terminal: Callable[[], Terminal], cell: str
) -> None:
    terminal = open_terminal()
    output.table(COLUMNS, [[cell, "1", "y"]])

    assert cell in terminal.getvalue()


def test_escapes_in_a_terminal_table_are_not_passed_on(
    open_terminal: Callable[[], Terminal],
) -> None:
    terminal = open_terminal()
    output.table(COLUMNS, [["\x1b[2J\x07", "1", "y"]])

    assert "\x1b[2J" not in terminal.getvalue()
    assert "␛[2J␇" in terminal.getvalue()


def test_a_style_shows_on_a_terminal(open_terminal: Callable[[], Terminal]) -> None:
    terminal = open_terminal()
    output.text("hello", "bold")

    assert terminal.getvalue() == "\x1b[1mhello\x1b[0m\n"


def test_a_style_does_not_show_where_colour_is_unwanted(
    open_terminal: Callable[[], Terminal], monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = open_terminal()
    monkeypatch.setenv("NO_COLOR", "1")

    output.text("hello", "bold")

    assert terminal.getvalue() == "hello\n"


def test_json_has_no_character_that_a_terminal_obeys(capsys: pytest.CaptureFixture[str]) -> None:
    hostile = "\x1b[2J\x9b2J\u202e\ud800\u2028 日本"

    output.rows([{"text": hostile}])

    line = capsys.readouterr().out
    assert line.count("\n") == 1
    assert line.strip().replace("日本", "").isascii()
    assert json.loads(line)["text"] == hostile


def test_json_refuses_what_strict_json_lacks() -> None:
    with pytest.raises(ValueError, match="JSON"):
        output.json_line({"x": float("nan")})


def test_json_stays_json_on_a_stream_that_is_not_unicode(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="latin-1", errors="backslashreplace")
    monkeypatch.setattr(sys, "stdout", stream)

    output.document({"text": "é日"})
    stream.flush()

    assert json.loads(raw.getvalue().decode("latin-1")) == {"text": "é日"}


def test_models_data_classes_and_paths_become_json() -> None:
    @dataclass
    class Pair:
        sample: Sample
        path: Path

    sample = Sample(id="a", question="q", response="r", reference=("x",))

    written = json.loads(output.json_line(Pair(sample, Path("/tmp/x"))))

    assert written["sample"]["reference"] == ["x"]
    assert written["path"] == "/tmp/x"


def test_a_full_disk_is_an_error_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(sys, "stdout", Full())

    with pytest.raises(StorageError, match="No space left"):
        output.text("hello")


def test_pairs_align_their_values_over_lines(capsys: pytest.CaptureFixture[str]) -> None:
    output.pairs([("a", "one\ntwo"), ("long", "three")])

    assert capsys.readouterr().out == "a     one\n      two\nlong  three\n"
