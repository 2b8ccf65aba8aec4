"""Arrays read entry by entry: the same rows as at once, and files that break off."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offline_judge.datasets.json_stream import Entry, JsonStreamError, stream_entries

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab"), inner, max_size=3),
    max_leaves=8,
)
ROWS = st.lists(st.dictionaries(st.text("abc", max_size=3), VALUES, max_size=4), max_size=6)


class Dripping(io.StringIO):
    """Gives a few characters at a time, so that every cut is met."""

    def read(self, size: int | None = -1) -> str:
        return super().read(3)


def _rows(text: str, key: str = "") -> list[Entry]:
    return list(stream_entries(Dripping(text), key))


@given(ROWS)
def test_the_rows_are_those_of_the_whole_file(rows: list[dict[str, Any]]) -> None:
    found = _rows(json.dumps(rows, indent=1))
    assert [entry.row for entry in found] == rows
    assert [entry.number for entry in found] == list(range(1, len(rows) + 1))


@given(ROWS)
def test_the_array_of_a_key_is_found_behind_others(rows: list[dict[str, Any]]) -> None:
    text = json.dumps({"Version": 1.5, "Old": [{"Data": []}], "Data": rows, "Last": True})
    assert [entry.row for entry in _rows(text, "Data")] == rows


@pytest.mark.parametrize("cut", [1, 2, 9, 15, 16, 17, 30])
def test_an_array_that_breaks_off_is_refused(cut: int) -> None:
    text = '[{"a": 1}, {"a": "two"}, {"b": 3}]'
    with pytest.raises(JsonStreamError):
        _rows(text[:cut])


def test_a_bad_entry_spoils_no_other() -> None:
    found = _rows('[{"a": 1}, {"a": NaN}, [1], {"a": 1, "a": 2}, {"a": 2}]')
    assert [entry.row for entry in found] == [{"a": 1}, {}, {}, {}, {"a": 2}]
    problems = [entry.problem for entry in found]
    assert problems[0] == problems[4] == ""
    assert "NaN" in problems[1]
    assert "not a JSON object but an array" in problems[2]
    assert "given twice" in problems[3]


def test_half_a_surrogate_pair_is_a_problem_of_its_entry() -> None:
    found = _rows(r'[{"a": "\ud83d"}, {"a": "\ud83d\ude00"}]')
    assert "surrogate" in found[0].problem
    assert found[1].row == {"a": "\U0001f600"}


@pytest.mark.parametrize(
    ("text", "key", "found"),
    [
        ('{"a": 1}', "", "not a JSON array but an object"),
        ("", "", "an empty file"),
        ("[1]", "Data", "not a JSON object with `Data` but an array"),
        ('{"a": 1, "b": [2]}', "Data", "without `Data`; it has: a, b"),
        ('{"Data": {"a": 1}}', "Data", "not a JSON array but an object"),
        ('[{"a": 1} {"a": 2}]', "", "`{` stands behind entry 1"),
    ],
)
def test_another_form_is_named(text: str, key: str, found: str) -> None:
    with pytest.raises(JsonStreamError) as caught:
        _rows(text, key)
    assert found in str(caught.value)
