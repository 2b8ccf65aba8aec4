"""Rows of a data file, whatever its format: streamed, numbered, and hashed on the way."""

from __future__ import annotations

import csv
import hashlib
import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from offline_judge.domain.strict_json import parse_row
from offline_judge.errors import DataError

FORMATS = {".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".csv": "csv", ".tsv": "tsv"}
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Row:
    """One row: the line it starts in, and its columns or what is wrong with it."""

    line: int
    columns: dict[str, Any]
    problem: str = ""


def file_format(path: Path) -> str:
    """`jsonl`, `csv` or `tsv`, by the file's suffix.

    Raises:
        DataError: another suffix.
    """
    try:
        return FORMATS[path.suffix.lower()]
    except KeyError:
        raise DataError(
            f"Cannot tell the format of `{path.name}`",
            where=str(path),
            remedy=f"Name it {', '.join(FORMATS)}.",
        ) from None


class DataFile:
    """Reads a data file once, row by row; `sha256` is known when all rows were read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.format = file_format(path)
        self.columns: tuple[str, ...] = ()
        """Names of the columns; JSON Lines has none of the file as a whole."""
        self._digest = hashlib.sha256()

    @property
    def sha256(self) -> str:
        """Hash of the bytes read so far."""
        return self._digest.hexdigest()

    def rows(self) -> Iterator[Row]:
        """All rows that are not blank.

        Raises:
            DataError: the file as a whole cannot be read or is not what its suffix says.
        """
        try:
            with self.path.open("rb") as file:
                self._refuse_utf16(file)
                yield from self._json_rows(file) if self.format == "jsonl" else self._csv_rows(file)
        except OSError as error:
            raise DataError(
                f"Cannot read the data: {error.strerror or error}", where=str(self.path)
            ) from error

    def _refuse_utf16(self, file: IO[bytes]) -> None:
        start = file.read(2)
        file.seek(0)
        if start in _UTF16:
            raise DataError("The file is UTF-16", where=str(self.path), remedy="Save it as UTF-8.")

    def _lines(self, file: IO[bytes]) -> Iterator[bytes]:
        for number, line in enumerate(file):
            self._digest.update(line)
            yield line.removeprefix(_BOM) if number == 0 else line

    def _json_rows(self, file: IO[bytes]) -> Iterator[Row]:
        for number, line in enumerate(self._lines(file), start=1):
            stripped = line.strip()
            if not stripped:
                continue
            if number == 1 and stripped.startswith(b"["):
                raise DataError(
                    "The file is one JSON array, not one object a line",
                    where=str(self.path),
                    remedy=f"Convert it with `jq -c '.[]' {self.path.name} > rows.jsonl`.",
                )
            try:
                yield Row(number, parse_row(stripped))
            except ValueError as error:
                yield Row(number, {}, str(error))

    def _csv_rows(self, file: IO[bytes]) -> Iterator[Row]:
        # Bytes that are no UTF-8 become surrogates, so that the row and field can be named.
        raw = io.BufferedReader(_Hashing(file, self._digest))
        text = io.TextIOWrapper(raw, "utf-8-sig", errors="surrogateescape", newline="")
        delimiter = "\t" if self.format == "tsv" else ","
        with _large_fields():
            reader = csv.reader(text, delimiter=delimiter, strict=True)
            try:
                header = next((cells for cells in reader if any(cells)), None)
                if header is None:
                    return
                self.columns = self._header(header)
                yield from self._cells(reader)
            except csv.Error as error:
                raise DataError(
                    f"Not {self.format.upper()}: {error}",
                    where=f"{self.path}, line {reader.line_num}",
                ) from error

    def _header(self, cells: list[str]) -> tuple[str, ...]:
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
        if len(cells) != len(self.columns):
            problem = f"{len(cells)} fields, but the header names {len(self.columns)}"
            return Row(line, {}, problem)
        for name, cell in zip(self.columns, cells, strict=True):
            if not cell.isascii() and any("\ud800" <= char <= "\udfff" for char in cell):
                return Row(line, {}, f"field `{name}` is not UTF-8")
        return Row(line, dict(zip(self.columns, cells, strict=True)))


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
