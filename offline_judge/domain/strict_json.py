"""One row of a JSON Lines file, parsed strictly: what is accepted can be written out again."""

from __future__ import annotations

import json
import math
from typing import Any

_MAX_DIGITS = 400  # more than any double has; Python itself refuses to print very many


def parse_row(line: bytes) -> dict[str, Any]:
    """Parse one line into an object.

    Refused beside broken JSON: NaN and infinities (also by overflow), lone surrogates, a key
    given twice, and anything that is not an object.

    Raises:
        ValueError: with a reason for people, without the line's number.
    """
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8 at byte {error.start + 1}") from None
    try:
        row = STRICT.decode(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error.msg} at character {error.colno}") from None
    except RecursionError:
        raise ValueError("nested too deeply") from None
    return checked_row(row, escapes="\\u" in text)


def checked_row(row: Any, *, escapes: bool) -> dict[str, Any]:
    """A parsed value as a row.

    Args:
        row: What `STRICT` made of the text.
        escapes: The text had escapes, which alone can bring lone surrogates.

    Raises:
        ValueError: it is no object, or holds a lone surrogate.
    """
    if not isinstance(row, dict):
        raise ValueError(f"not a JSON object but {json_kind(row)}")
    if escapes:
        _refuse_lone_surrogates(row)
    return row


def json_kind(value: Any) -> str:
    """The JSON name of a value's type, with its article."""
    if value is None:
        return "null"
    names = {bool: "a boolean", str: "a string", list: "an array", dict: "an object"}
    return names.get(type(value), "a number")


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def _whole(literal: str) -> int:
    if len(literal) > _MAX_DIGITS:
        raise ValueError(f"the number {literal[:20]} is too large")
    return int(literal)


def _finite(literal: str) -> float:
    value = float(literal)
    if math.isinf(value):
        raise ValueError(f"the number {literal[:20]} is too large")
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    row = dict(pairs)
    if len(row) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key `{twice}` is given twice")
    return row


def _refuse_lone_surrogates(row: dict[str, Any]) -> None:
    for key, value in row.items():
        try:
            json.dumps([key, value], ensure_ascii=False).encode("utf-8")
        except UnicodeEncodeError:
            name = key.encode("utf-8", "replace").decode()
            raise ValueError(f"field `{name}` holds half of a surrogate pair") from None


STRICT = json.JSONDecoder(
    parse_constant=_no_constant,
    parse_float=_finite,
    parse_int=_whole,
    object_pairs_hook=_unique,
)
"""Decodes JSON that can be written out again; raises ValueError for any other."""
