"""Reading documents: what is taken, and how bad rows are named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from offline_judge.errors import DataError
from offline_judge.retrieval.corpus.documents import Document, file_hash, read_documents

GOOD = {"id": "a", "title": "T", "text": "Some text."}


def _write(folder: Path, *rows: Any) -> Path:
    path = folder / "documents.jsonl"
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    path.write_text("\n".join(lines), "utf-8")
    return path


def _problem(path: Path) -> str:
    with pytest.raises(DataError) as caught:
        list(read_documents(path))
    return str(caught.value)


def test_documents_are_read_with_their_optional_fields(tmp_path: Path) -> None:
    path = _write(
        tmp_path,
        GOOD,
        "",
        {"id": 7, "title": "", "text": " x ", "url": "u", "date": "2020", "other": [1]},
    )
    assert list(read_documents(path)) == [
        Document("a", "T", "Some text."),
        Document("7", "", " x ", url="u", date="2020"),
    ]


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({"id": "b", "title": "T"}, "line 2: `text` is missing (the row has: id, title)"),
        ({"id": "b", "text": "x"}, "line 2: `title` is missing"),
        ({"title": "T", "text": "x"}, "line 2: `id` is missing"),
        ({"id": " ", "title": "T", "text": "x"}, "line 2: `id` is empty"),
        ({"id": True, "title": "T", "text": "x"}, "line 2: `id` must be a string, not a boolean"),
        ({"id": "b", "title": "T", "text": " \n"}, "line 2: `text` is empty"),
        ({"id": "b", "title": "T", "text": ["x"]}, "line 2: `text` must be a string, not an array"),
        (GOOD, "line 2: `id` 'a' was used in line 1"),
        ("{", "line 2: not JSON"),
        ('{"id": "b", "title": "T", "text": "\\ud800"}', "line 2: field `text` holds half"),
    ],
)
def test_a_bad_row_is_named_by_line_and_field(tmp_path: Path, row: Any, problem: str) -> None:
    assert problem in _problem(_write(tmp_path, GOOD, row))


def test_bad_rows_behind_the_first_are_named_too_but_five_at_most(tmp_path: Path) -> None:
    problem = _problem(_write(tmp_path, *["{"] * 7))
    assert "line 5:" in problem
    assert "line 6:" not in problem


def test_documents_before_a_bad_row_are_streamed_and_none_behind_it(tmp_path: Path) -> None:
    stream = read_documents(_write(tmp_path, GOOD, "{", GOOD | {"id": "c"}))
    assert next(stream).id == "a"
    with pytest.raises(DataError):
        next(stream)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    assert "No such file" in _problem(tmp_path / "absent.jsonl")
    with pytest.raises(DataError, match="No such file"):
        file_hash(tmp_path / "absent.jsonl")


def test_the_hash_changes_with_the_content_and_not_with_the_name(tmp_path: Path) -> None:
    path = _write(tmp_path, GOOD)
    before = file_hash(path)
    moved = path.rename(tmp_path / "moved.jsonl")
    assert file_hash(moved) == before
    moved.write_bytes(moved.read_bytes() + b"\n")
    assert file_hash(moved) != before
