"""Owns stdout: tables, text and JSON, and nothing else ever."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, is_dataclass
from os import PathLike
from typing import Any

from offline_judge.cli.diagnostics import paint, wants_colour
from offline_judge.domain.visible import visible
from offline_judge.errors import StorageError

# Inside JSON these only occur in strings, where an escape means the same character: a terminal
# must not obey them, and lone surrogates cannot be written at all.
_UNSAFE = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


@dataclass(frozen=True)
class Column:
    """A table's column; numbers stand to the right."""

    title: str
    right: bool = False


def is_terminal() -> bool:
    """Whether stdout is a terminal."""
    return bool(sys.stdout.isatty())


def write(text: str) -> None:
    """Write text as it is.

    Raises:
        BrokenPipeError: whoever read stdout is gone.
        StorageError: stdout goes to a file that cannot take it, on a full disk for example.
    """
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise StorageError(f"Cannot write the output: {error.strerror}", where="stdout") from error


def text(line: str = "", style: str = "") -> None:
    """Write one text made visible, lines kept; `style` shows on terminals only."""
    shown = visible(line, lines=True)
    write(f"{paint(shown, style) if wants_colour(sys.stdout) else shown}\n")


def document(value: Any) -> None:
    """Write one strict JSON document."""
    write(f"{_json(value, indent=2)}\n")


def rows(values: Iterable[Any]) -> None:
    """Write JSON Lines, each as soon as it is known."""
    for value in values:
        write(json_line(value))


def json_line(value: Any) -> str:
    """One line of JSON Lines, line feed and all."""
    return f"{_json(value, indent=None)}\n"


def plain(value: Any) -> Any:
    """Models, data classes and paths as the dicts, lists and strings that JSON knows."""
    if hasattr(value, "model_dump"):
        return plain(value.model_dump())
    if is_dataclass(value) and not isinstance(value, type):
        return plain(asdict(value))
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in value]
    return str(value) if isinstance(value, PathLike) else value


def _json(value: Any, *, indent: int | None) -> str:
    encoding = (sys.stdout.encoding or "ascii").lower().replace("_", "-")
    unicode = encoding in ("utf-8", "utf8")
    dumped = json.dumps(plain(value), ensure_ascii=not unicode, allow_nan=False, indent=indent)
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", dumped)


def pairs(items: Sequence[tuple[str, str]]) -> None:
    """Write names with their values below one another, names aligned."""
    width = max((len(name) for name, _ in items), default=0)
    for name, value in items:
        indented = visible(value, lines=True).replace("\n", f"\n{' ' * (width + 2)}")
        label = (
            paint(f"{name:<{width}}", "bold") if wants_colour(sys.stdout) else f"{name:<{width}}"
        )
        write(f"{label}  {indented}".rstrip() + "\n")


def table(columns: Sequence[Column], cells: Iterable[Sequence[str]]) -> None:
    """Write a table: fitted to a terminal's width, else aligned text in full length."""
    shown = [[visible(cell) for cell in row] for row in cells]
    if is_terminal():
        _rich_table(columns, shown)
    else:
        _plain_table(columns, shown)


def _plain_table(columns: Sequence[Column], cells: Sequence[Sequence[str]]) -> None:
    from rich.cells import cell_len

    lines = [[column.title for column in columns], *cells]
    widths = [max(cell_len(line[i]) for line in lines) for i in range(len(columns))]
    for line in lines:
        padded = []
        for column, width, cell in zip(columns, widths, line, strict=True):
            gap = " " * (width - cell_len(cell))
            padded.append(f"{gap}{cell}" if column.right else f"{cell}{gap}")
        write("  ".join(padded).rstrip() + "\n")


def _rich_table(columns: Sequence[Column], cells: Sequence[Sequence[str]]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        grid.add_column(Text(column.title), justify="right" if column.right else "left")
    for row in cells:
        grid.add_row(*(Text(cell) for cell in row))
    Console(file=sys.stdout, markup=False, highlight=False, emoji=False).print(grid)
