"""Large JSON files read entry by entry, so that a set of gigabytes needs the memory of one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any

from offline_judge.domain.strict_json import STRICT, checked_row, json_kind

_CHUNK = 1 << 16
_LENIENT = json.JSONDecoder()
_BLANKS = " \t\r\n"


@dataclass(frozen=True)
class Entry:
    """One entry of an array, counted from 1: its object, or what is wrong with it."""

    number: int
    row: dict[str, Any]
    problem: str = ""


class JsonStreamError(ValueError):
    """The file is no JSON of the expected form; the text says what was found."""


def stream_entries(text: IO[str], key: str = "") -> Iterator[Entry]:
    """The entries of a JSON array, one at a time.

    Args:
        text: The file; a decoding error of its own is the caller's.
        key: The array is the value of this key of one object; "" where it is the whole file.

    Raises:
        JsonStreamError: no such array, or JSON that breaks off or is malformed.
    """
    source = _Source(text)
    if key:
        _seek(source, key)
    if source.peek() != "[":
        raise JsonStreamError(f"not a JSON array but {_found(source.peek())}")
    source.take()
    number = 0
    if source.peek() == "]":
        source.take()
        return
    while True:
        number += 1
        yield _entry(source, number)
        mark = source.take()
        if mark == "]":
            return
        if mark != ",":
            raise JsonStreamError(f"{_mark(mark)} behind entry {number} of the array")


class _Source:
    """Text that is read on as it is needed; what was taken is let go."""

    def __init__(self, text: IO[str]) -> None:
        self._text = text
        self._buffer = ""
        self._at = 0
        self._ended = False
        self._escapes = False

    def peek(self) -> str:
        """The next character that is no blank, "" at the end."""
        while True:
            while self._at < len(self._buffer):
                if self._buffer[self._at] not in _BLANKS:
                    return self._buffer[self._at]
                self._at += 1
            if not self._more(_CHUNK):
                return ""

    def take(self) -> str:
        """The next character that is no blank, taken."""
        found = self.peek()
        self._at += len(found)
        return found

    def value(self) -> Any:
        """The next value, taken.

        Raises:
            JsonStreamError: it breaks off or is malformed.
            ValueError: it is JSON that cannot be written out again; it is taken all the same.
        """
        self.peek()
        size = _CHUNK
        while True:
            try:
                value, end = STRICT.raw_decode(self._buffer, self._at)
            except (json.JSONDecodeError, RecursionError) as error:
                # Perhaps only cut; twice as much each time keeps the work in proportion.
                if not self._more(size):
                    raise JsonStreamError(_broken(error)) from None
                size *= 2
                continue
            except ValueError as error:
                self._skip(str(error))
                raise
            if end == len(self._buffer) and self._more(size):
                continue  # a number may go on
            self._escapes = "\\u" in self._buffer[self._at : end]
            self._at = end
            return value

    @property
    def escapes(self) -> bool:
        """Whether the value taken last was written with escapes."""
        return self._escapes

    def _skip(self, problem: str) -> None:
        """Take a value that is JSON but refused."""
        size = _CHUNK
        while True:
            try:
                self._at = _LENIENT.raw_decode(self._buffer, self._at)[1]
            except (ValueError, RecursionError):
                if not self._more(size):
                    raise JsonStreamError(problem) from None
                size *= 2
            else:
                return

    def _more(self, size: int) -> bool:
        read = "" if self._ended else self._text.read(size)
        self._ended = self._ended or not read
        if read:
            self._buffer = self._buffer[self._at :] + read
            self._at = 0
        return bool(read)


def _entry(source: _Source, number: int) -> Entry:
    try:
        value = source.value()
        return Entry(number, checked_row(value, escapes=source.escapes))
    except JsonStreamError as error:
        raise JsonStreamError(f"entry {number}: {error}") from None
    except ValueError as error:
        return Entry(number, {}, str(error))


def _seek(source: _Source, key: str) -> None:
    """Stand before the value of a key of the object that the file is."""
    if source.peek() != "{":
        raise JsonStreamError(f"not a JSON object with `{key}` but {_found(source.peek())}")
    source.take()
    seen: list[str] = []
    while source.peek() == '"':
        name = str(source.value())
        if source.take() != ":":
            raise JsonStreamError(f"no value behind `{name}`")
        if name == key:
            return
        seen.append(name)
        try:
            source.value()
        except JsonStreamError:
            raise
        except ValueError as error:
            raise JsonStreamError(f"`{name}`: {error}") from None
        if source.peek() == ",":
            source.take()
    found = ", ".join(seen[:10]) or "nothing"
    raise JsonStreamError(f"a JSON object without `{key}`; it has: {found}")


def _found(mark: str) -> str:
    kinds = {"{": "an object", '"': "a string", "[": "an array", "": "an empty file"}
    return kinds.get(mark) or (json_kind(0) if mark.isdigit() else f"text that begins with {mark}")


def _mark(mark: str) -> str:
    return f"`{mark}` stands" if mark else "the file breaks off"


def _broken(error: json.JSONDecodeError | RecursionError) -> str:
    if isinstance(error, RecursionError):
        return "nested too deeply"
    return f"not JSON, or cut short: {error.msg}"
