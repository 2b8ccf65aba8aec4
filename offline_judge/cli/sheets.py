"""Rows as CSV that a spreadsheet opens as text: nothing in it is computed."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from offline_judge.cli import output

BOM = "\ufeff"
# What spreadsheets take for the beginning of a formula; the wide forms in East Asian settings.
_BEGINNINGS = tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")
_NUMBER = re.compile(r"[+-]?\d+([.,]\d+)?([eE][+-]?\d+)?%?")


class Sheet:
    """Turns rows into the pieces of a CSV file.

    Attributes:
        defused: Cells of text so far that got an apostrophe in front, because a spreadsheet would
            have computed them.
    """

    def __init__(self) -> None:
        self.defused = 0

    def pieces(self, rows: Iterable[Mapping[str, Any]], *, marked: bool = False) -> Iterator[str]:
        """The header, then a row a piece; metadata may differ from row to row.

        Args:
            rows: All of them are kept until the columns are known.
            marked: Put a byte order mark in front, by which Excel knows UTF-8.
        """
        kept = [output.plain(row) for row in rows]
        columns = list(dict.fromkeys(name for row in kept for name in row))
        if marked:
            yield BOM
        for row in [dict(zip(columns, columns, strict=True)), *kept]:
            piece = io.StringIO()
            cells = {name: self._cell(value) for name, value in row.items()}
            csv.DictWriter(piece, columns, lineterminator="\n").writerow(cells)
            yield piece.getvalue()

    def _cell(self, value: Any) -> Any:
        if not isinstance(value, str) or not value.startswith(_BEGINNINGS):
            return value
        if _NUMBER.fullmatch(value):
            return value
        self.defused += 1
        return f"'{value}"
