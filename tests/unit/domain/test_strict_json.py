"""Strict rows: what gets in can be written out again."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offline_judge.domain.base import canonical_json
from offline_judge.domain.strict_json import json_kind, parse_row

_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), _VALUES, max_size=5), st.booleans())
def test_every_strict_object_comes_back_as_it_is(row: dict[str, object], escaped: bool) -> None:
    assert parse_row(json.dumps(row, ensure_ascii=escaped).encode()) == row


@given(st.binary(max_size=40))
def test_any_bytes_give_a_writable_object_or_a_value_error(line: bytes) -> None:
    row: dict[str, object] = {}
    with contextlib.suppress(ValueError):
        row = parse_row(line)
    assert canonical_json(row).encode()


@pytest.mark.parametrize(
    "line",
    [
        b'{"a": Infinity}',
        b'{"a": -1e400}',
        b'{"a": "\\udc00"}',
        b'{"\\ud800": 1}',
        b'{"a": {"b": ["\\ud83d"]}}',
        b'{"a": {"b": 1, "b": 2}}',
        b'{"a": ' + b"9" * 401 + b"}",
        b'{"a": "\xff"}',
    ],
)
def test_what_could_not_be_written_out_is_refused(line: bytes) -> None:
    with pytest.raises(ValueError, match=r"\w+ \w+"):
        parse_row(line)


def test_a_whole_surrogate_pair_is_a_character() -> None:
    assert parse_row(b'{"a": "\\ud83d\\ude00"}') == {"a": "\U0001f600"}


def test_kinds_have_their_json_names() -> None:
    values: list[object] = [None, True, 1, 1.5, "x", [], {}]
    assert [json_kind(value) for value in values] == [
        "null",
        "a boolean",
        "a number",
        "a number",
        "a string",
        "an array",
        "an object",
    ]
