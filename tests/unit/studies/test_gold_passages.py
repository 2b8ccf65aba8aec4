"""Files that say which passages hold the answers."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from offline_judge.errors import DataError
from offline_judge.studies.gold import read_gold

BOM = b"\xef\xbb\xbf"


def _write(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("g.csv", BOM + b"question,gold_passage_id\r\nWho?,p1\r\n"),
        ("g.csv", b"question;passage_id\nWho?;p1\n"),
        ("g.tsv", b"question\tgold\nWho?\tp1\n"),
        ("g.csv", b'question,passage\n"Who\n?",p1\n'),
        ("g.jsonl", BOM + b'{"question": "Who?", "passage": "p1"}\n'),
        ("g.jsonl.gz", gzip.compress(b'{"question": "Who?", "gold": ["p1"]}\n')),
        ("g.csv.gz", gzip.compress(b"question,gold\nWho?,p1\n")),
    ],
)
def test_gold_passages_are_read_as_data_files_are(
    tmp_path: Path, name: str, content: bytes
) -> None:
    assert read_gold(_write(tmp_path, name, content)).of("who?") == {"p1"}


@pytest.mark.parametrize("mark", ["\u2028", "\u2029", "\x85", "\x0c"])
def test_a_line_separator_in_a_text_ends_no_line(tmp_path: Path, mark: str) -> None:
    escaped = "\\f" if mark == "\x0c" else mark
    row = f'{{"question": "Who{escaped}came?", "gold": "p1"}}\n'
    assert read_gold(_write(tmp_path, "g.jsonl", row)).of(f"Who{mark}came?") == {"p1"}


def test_a_number_is_an_id_too_and_so_is_0(tmp_path: Path) -> None:
    rows = '{"question": "Who?", "gold": 0}\n{"question": "Who?", "gold_passage_id": [0, 7, "x"]}\n'
    assert read_gold(_write(tmp_path, "g.jsonl", rows)).of("Who?") == {"0", "7", "x"}


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ('{"question": "Who?", "gold": "", "passage": []}', "`gold_passage_id` is missing"),
        ('{"gold": "p1"}', "`question` is missing"),
        ('{"question": " ", "gold": "p1"}', "`question` is empty"),
        ('{"question": "Who?", "gold": {"id": 1}}', "must be text or a whole number"),
        ("[1]", "not a JSON object but an array"),
        ('{"question": ', "not JSON"),
    ],
)
def test_a_row_that_cannot_be_used_is_named(tmp_path: Path, row: str, problem: str) -> None:
    path = _write(tmp_path, "g.jsonl", f'{{"question": "Q", "gold": 1}}\n{row}\n')
    with pytest.raises(DataError) as caught:
        read_gold(path)
    assert "line 2: " in caught.value.message
    assert problem in caught.value.message
    assert caught.value.where == str(path)


def test_one_array_is_refused_with_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="one JSON array") as caught:
        read_gold(_write(tmp_path, "g.json", '[{"question": "Who?", "gold": 1}]'))
    assert "jq" in caught.value.remedy
