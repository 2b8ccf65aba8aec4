"""Owns the form of a trace on disk: strict JSON lines, and large texts named by their hash."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from offline_judge.domain.base import text_hash
from offline_judge.errors import StorageError, TraceError

LARGE = 512
"""Characters above which a text is kept in the blobs."""
BLOB = "$blob"
TRACES = "events-*.jsonl"

_HASH_LENGTH = 64
_FOLDED = {"call_finished": "values", "search_finished": "hits"}
"""Event kind to the field whose large texts are kept in the blobs."""


@dataclass(frozen=True)
class Line:
    """One whole line of a trace: its number from 0, where it stands in bytes, and its object."""

    number: int
    offset: int
    length: int
    raw: dict[str, Any]


def encode(raw: dict[str, Any]) -> bytes:
    """One line, its newline last.

    Raises:
        ValueError: a number that JSON does not have, or a value within itself.
        TypeError: a value of a type that JSON does not have.
    """
    try:
        return _dump(raw, ascii_only=False)
    except UnicodeEncodeError:
        # A lone surrogate has no UTF-8, but an escape.
        return _dump(raw, ascii_only=True)


def read_lines(path: Path, *, offset: int = 0, number: int = 0) -> Iterator[Line]:
    """The whole lines of a trace; a last one without newline is none.

    Args:
        path: The file.
        offset: Byte to begin at, the first of a line.
        number: How many lines stand before it.

    Raises:
        TraceError: a line is not a JSON object, or is out of sequence; names file and line.
        StorageError: the file cannot be read.
    """
    try:
        with path.open("rb") as file:
            file.seek(offset)
            for data in file:
                if not data.endswith(b"\n"):
                    return
                yield Line(number, offset, len(data), parse_line(data, path, number))
                offset += len(data)
                number += 1
    except OSError as error:
        raise StorageError(f"Cannot read: {error.strerror}", where=str(path)) from error


def parse_line(data: bytes, path: Path, number: int) -> dict[str, Any]:
    """The object of line `number`, counted from 0, which is also its `seq`.

    Raises:
        TraceError: it is not a JSON object, or is out of sequence; names file and line.
    """
    try:
        raw = json.loads(data.decode("utf-8"), parse_constant=_no_constant)
    except UnicodeDecodeError:
        raise damage("a line is not UTF-8", path, number) from None
    except json.JSONDecodeError as error:
        raise damage(f"a line is not JSON ({error.msg})", path, number) from None
    except (ValueError, RecursionError) as error:
        raise damage(f"a line is not JSON ({error})", path, number) from None
    if not isinstance(raw, dict):
        raise damage("a line is not a JSON object", path, number)
    if raw.get("seq") != number:
        raise damage(f"expected event {number}, found {str(raw.get('seq'))[:20]}", path, number)
    return raw


def damage(what: str, path: Path, number: int) -> TraceError:
    """The error for line `number`, counted from 0."""
    return TraceError(
        f"The trace is damaged: {what}.",
        where=f"{path}:{number + 1}",
        remedy="The lines before it are whole. Keep a copy before you change anything.",
    )


def fold_texts(raw: dict[str, Any], large: list[str]) -> dict[str, Any]:
    """An event with its large texts replaced by their hashes; they are added to `large`."""
    field = _FOLDED.get(raw["event"])
    return {**raw, field: _fold(raw[field], large)} if field else raw


def unfold_texts(raw: dict[str, Any], get: Callable[[str], str]) -> dict[str, Any]:
    """An event with its large texts put back: `get` tells the text of a hash."""
    field = _FOLDED.get(str(raw.get("event")))
    return {**raw, field: _unfold(raw[field], get)} if field in raw else raw


def _dump(raw: dict[str, Any], *, ascii_only: bool) -> bytes:
    text = json.dumps(raw, ensure_ascii=ascii_only, separators=(",", ":"), allow_nan=False)
    return text.encode("utf-8") + b"\n"


def _fold(value: Any, large: list[str]) -> Any:
    if isinstance(value, str):
        if len(value) <= LARGE:
            return value
        large.append(value)
        return {BLOB: text_hash(value)}
    if isinstance(value, dict):
        return {key: _fold(part, large) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_fold(part, large) for part in value]
    return value


def _unfold(value: Any, get: Callable[[str], str]) -> Any:
    if isinstance(value, dict):
        name = value.get(BLOB)
        if len(value) == 1 and isinstance(name, str) and len(name) == _HASH_LENGTH:
            return get(name)
        return {key: _unfold(part, get) for key, part in value.items()}
    if isinstance(value, list):
        return [_unfold(part, get) for part in value]
    return value


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no number")
