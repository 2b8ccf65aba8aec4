"""Rows of a data file, whatever its format: streamed, numbered, and hashed on the way."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import sys
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any, Literal, cast

from offline_judge.datasets.json_stream import JsonStreamError, stream_entries
from offline_judge.domain.strict_json import parse_row
from offline_judge.errors import DataError

SUFFIXES = {".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".csv": "csv", ".tsv": "tsv"}
NOT_UTF8 = "is not UTF-8"
_GZIP = ".gz"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_BOM = b"\xef\xbb\xbf"
_CHUNK = 1 << 16
_NOTES = 10
"""Rows of a table among which its header is looked for, where notes may stand above it."""


@dataclass(frozen=True)
class Row:
    """One row: where it stands (`line 3`), and its columns or what is wrong with it."""

    place: str
    columns: dict[str, Any]
    problem: str = ""


@dataclass(frozen=True)
class Table:
    """How a table is written.

    Attributes:
        quoted: Cells may be quoted; without, a quotation mark is a character like others.
        header: Columns that tell the header from notes above it; empty: it is the first row.
    """

    quoted: bool = True
    header: frozenset[str] = frozenset()


class WrongShapeError(Exception):
    """A file is not of the form that it was taken for.

    Args:
        found: What it is or has, for people.
        columns: The columns of its first row, where it has any.
    """

    def __init__(self, found: str, columns: dict[str, Any] | None = None) -> None:
        super().__init__(found)
        self.found = found
        self.columns = columns or {}


def file_format(path: Path) -> str:
    """`jsonl`, `csv` or `tsv`, by the file's suffix; a `.gz` behind it does not count.

    Raises:
        DataError: another suffix.
    """
    try:
        return SUFFIXES[_suffix(path)]
    except KeyError:
        raise DataError(
            f"Cannot tell the format of `{path.name}`",
            where=str(path),
            remedy=f"Name it {', '.join(SUFFIXES)}; each may be gzipped (.gz).",
        ) from None


class DataFile:
    """Reads a data file once, row by row; `sha256` is known when all rows were read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.format = file_format(path)
        self.columns: tuple[str, ...] = ()
        """Names of the columns; JSON has none of the file as a whole."""
        self._digest = hashlib.sha256()

    @property
    def sha256(self) -> str:
        """Hash of the file's bytes read so far."""
        return self._digest.hexdigest()

    def rows(self) -> Iterator[Row]:
        """All rows that are not blank: of JSON Lines, or of a table with a header.

        Raises:
            DataError: the file as a whole cannot be read or is not what its suffix says.
            WrongShapeError: it is one JSON array.
        """
        return self.lines() if self.format == "jsonl" else self.table(Table())

    def lines(self) -> Iterator[Row]:
        """The rows of JSON Lines; raises as `rows` does."""
        with self._opened() as file:
            for number, line in enumerate(file, start=1):
                stripped = (line.removeprefix(_BOM) if number == 1 else line).strip()
                if not stripped:
                    continue
                if number == 1 and stripped.startswith(b"["):
                    raise WrongShapeError("one JSON array, not one object a line")
                try:
                    yield Row(f"line {number}", parse_row(stripped))
                except ValueError as error:
                    yield Row(f"line {number}", {}, str(error))

    def entries(self, key: str = "") -> Iterator[Row]:
        """The entries of a JSON array; of JSON Lines where the file's name says so.

        Args:
            key: The array is the value of this key of one object; "" where it is the whole file.

        Raises:
            DataError: the file cannot be read, or its JSON is broken.
            WrongShapeError: there is no such array.
        """
        if self.format != "jsonl":
            raise self._is_table()
        if _suffix(self.path) != ".json" or (not key and self._begins_with(b"{")):
            yield from self.lines()
            return
        with self._opened() as file, self._text(file, errors="strict") as text:
            try:
                for entry in stream_entries(text, key):
                    yield Row(f"entry {entry.number}", entry.row, entry.problem)
            except JsonStreamError as error:
                raise WrongShapeError(str(error)) from None
            except UnicodeDecodeError as error:
                raise DataError(
                    "The file is not UTF-8", where=str(self.path), remedy=utf8_remedy(self.path)
                ) from error

    def table(self, shape: Table) -> Iterator[Row]:
        """The rows of CSV or TSV.

        Raises:
            DataError: the file cannot be read, or breaks the rules of CSV.
            WrongShapeError: no header that `shape` demands.
        """
        if self.format == "jsonl":
            raise WrongShapeError("a JSON file, not a table")
        # Bytes that are no UTF-8 become surrogates, so that the row and field can be named.
        with self._opened() as file, self._text(file, errors="surrogateescape") as text:
            opening = _opening(text)
            delimiter = "\t" if self.format == "tsv" else _delimiter("".join(opening))
            quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if shape.quoted else csv.QUOTE_NONE
            lines = chain(opening, text)
            with _large_fields():
                reader = csv.reader(lines, delimiter=delimiter, quoting=quoting, strict=True)
                try:
                    header = self._header(reader, shape.header)
                    if header is not None:
                        self.columns = self._names(header)
                        yield from self._cells(reader)
                except csv.Error as error:
                    if shape.header and not self.columns:
                        raise self._is_table() from error
                    raise DataError(
                        f"Not {self.format.upper()}: {error}",
                        where=f"{self.path}, line {reader.line_num}",
                    ) from error

    @contextmanager
    def _opened(self) -> Iterator[IO[bytes]]:
        """The file's content, unpacked; when the block ends, all of the file is hashed."""
        try:
            with self.path.open("rb") as file:
                hashed = io.BufferedReader(_Hashing(file, self._digest), _CHUNK)
                packed = self.path.suffix.lower() == _GZIP
                content = gzip.GzipFile(fileobj=hashed) if packed else hashed
                if content.peek(2)[:2] in _UTF16:
                    raise DataError(
                        "The file is UTF-16", where=str(self.path), remedy="Save it as UTF-8."
                    )
                yield cast(IO[bytes], content)
                for source in (content, hashed):
                    while source.read(_CHUNK):
                        pass
        except (OSError, EOFError, zlib.error) as error:
            why = getattr(error, "strerror", None) or error
            raise DataError(f"Cannot read the data: {why}", where=str(self.path)) from error

    @contextmanager
    def _text(self, file: IO[bytes], *, errors: str) -> Iterator[io.TextIOWrapper]:
        text = io.TextIOWrapper(file, "utf-8-sig", errors=errors, newline="")
        try:
            yield text
        finally:
            with suppress(ValueError):
                text.detach()  # the file is closed by whoever opened it

    def _header(self, reader: Iterator[list[str]], wanted: frozenset[str]) -> list[str] | None:
        filled = (cells for cells in reader if any(cells))
        if not wanted:
            return next(filled, None)
        seen = []
        for cells in islice(filled, _NOTES):
            if wanted <= {cell.strip() for cell in cells}:
                return cells
            seen.append(cells)
        if not seen:
            return None
        raise _table_with(seen)

    def _is_table(self) -> WrongShapeError:
        """What to say of a table where JSON is expected."""
        delimiter = "\t" if self.format == "tsv" else ","
        with DataFile(self.path)._opened() as file:
            lines = [line.decode("utf-8", "replace") for line in islice(file, _NOTES)]
        return _table_with([line.strip("\ufeff\r\n").split(delimiter) for line in lines])

    def _begins_with(self, mark: bytes) -> bool:
        with DataFile(self.path)._opened() as file:
            start = file.read(_CHUNK)
        return start.removeprefix(_BOM).lstrip().startswith(mark)

    def _names(self, cells: list[str]) -> tuple[str, ...]:
        if any(_broken(cell) for cell in cells):
            raise DataError(
                f"The header {NOT_UTF8}", where=str(self.path), remedy=utf8_remedy(self.path)
            )
        names = [name.strip() or f"column_{place}" for place, name in enumerate(cells, start=1)]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise DataError(f"Two columns are named `{twice}`", where=f"{self.path}, header")
        return tuple(names)

    def _cells(self, reader: Any) -> Iterator[Row]:
        line = reader.line_num + 1
        for cells in reader:
            if any(cells):
                yield self._row(line, cells)
            line = reader.line_num + 1

    def _row(self, line: int, cells: list[str]) -> Row:
        place = f"line {line}"
        if len(cells) != len(self.columns):
            problem = f"{len(cells)} fields, but the header names {len(self.columns)}"
            return Row(place, {}, problem)
        for name, cell in zip(self.columns, cells, strict=True):
            if _broken(cell):
                return Row(place, {}, f"field `{name}` {NOT_UTF8}")
        return Row(place, dict(zip(self.columns, cells, strict=True)))


def utf8_remedy(path: Path) -> str:
    """What to type where a file is in another encoding, most likely that of an office program."""
    return (
        "Save it as UTF-8 (in Excel: CSV UTF-8), or convert it: "
        f"iconv -f WINDOWS-1252 -t UTF-8 {path.name} > utf8-{path.name}"
    )


def _table_with(rows: list[list[str]]) -> WrongShapeError:
    """The row with the most cells is most likely the header."""
    widest = max(rows, key=lambda cells: sum(map(bool, cells)), default=[])
    names = [cell.strip() for cell in widest if cell.strip()]
    return WrongShapeError(
        f"a table with the columns {', '.join(names)[:200]}", dict.fromkeys(names, "")
    )


def _suffix(path: Path) -> str:
    suffixes: Iterable[str] = (suffix.lower() for suffix in reversed(path.suffixes))
    return next((suffix for suffix in suffixes if suffix != _GZIP), "")


def _opening(text: Iterable[str]) -> list[str]:
    """The lines up to the first that is not blank."""
    lines = []
    for line in text:
        lines.append(line)
        if line.strip():
            break
    return lines


def _delimiter(header: str) -> str:
    """A comma, or what office programs write where the comma parts a number's digits."""
    return ";" if ";" in header and "," not in header else ","


def _broken(cell: str) -> bool:
    return not cell.isascii() and any("\ud800" <= char <= "\udfff" for char in cell)


class _Hashing(io.RawIOBase):
    """Passes a file's bytes on and hashes them."""

    def __init__(self, file: IO[bytes], digest: Any) -> None:
        self._file = file
        self._digest = digest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        block = self._file.read(len(buffer))
        self._digest.update(block)
        buffer[: len(block)] = block
        return len(block)


@contextmanager
def _large_fields() -> Iterator[None]:
    """Lift the csv module's limit of 128 KiB a field, which is one for the whole process."""
    before = csv.field_size_limit(sys.maxsize)
    try:
        yield
    finally:
        csv.field_size_limit(before)
