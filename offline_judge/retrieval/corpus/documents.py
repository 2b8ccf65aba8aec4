"""Documents of a corpus, and the reader of JSON Lines files that hold them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from offline_judge.domain.base import canonical_json
from offline_judge.domain.strict_json import json_kind, parse_row
from offline_judge.errors import DataError

SHOWN_PROBLEMS = 5


@dataclass(frozen=True)
class Document:
    """A text that is cut into passages.

    Attributes:
        id: Unique in its corpus.
        title: Shown with every passage and searched with three times the weight of the text.
        text: The text itself.
        url: Where it was taken from, if known.
        date: When it was written or taken, as its source gives it, if known.
        keywords: Other words it is to be found by; searched, never shown.
        sections: Where a section begins in the text, and the title that its passages carry; in
            their order. Text before the first one carries the document's own title.
    """

    id: str
    title: str
    text: str
    url: str = ""
    date: str = ""
    keywords: tuple[str, ...] = ()
    sections: tuple[tuple[int, str], ...] = ()

    def content_hash(self) -> str:
        """SHA-256 (64 hex digits) over all but the id.

        Raises:
            DataError: it holds half of a surrogate pair, which is no Unicode.
        """
        parts = [self.title, self.text, self.url, self.date, self.keywords, self.sections]
        try:
            self.id.encode()
            return hashlib.sha256(canonical_json(parts).encode()).hexdigest()
        except UnicodeEncodeError:
            raise DataError(f"The document `{self.id}` holds half of a surrogate pair") from None


@dataclass(frozen=True)
class Unread:
    """A document that is read only where it has changed, because reading it takes long.

    Attributes:
        id: Unique in its corpus.
        origin: Hash of what it would be read from, and of the way that is done.
        read: Reads it; None where it is to be left out.
    """

    id: str
    origin: str
    read: Callable[[], Document | None]


def file_hash(path: Path) -> str:
    """SHA-256 (64 hex digits) of a file's bytes.

    Raises:
        DataError: the file cannot be read.
    """
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise _unreadable(path, error) from error


def read_documents(path: Path, bad: list[str] | None = None) -> Iterator[Document]:
    """Stream documents from JSON Lines: `id`, `title`, `text`, optional `url` and `date`.

    Other keys are ignored and blank lines skipped. Only ids are kept in memory. An `id` may be
    an integer; a `title` may be empty.

    Args:
        path: The file.
        bad: Where given, bad rows are left out and what is wrong with each is put in here.

    Raises:
        DataError: the file cannot be read, or has bad rows: the first five are named by line and
            field. It is raised where the first bad row stands, after the rest was looked through.
    """
    seen: dict[str, int] = {}
    problems: list[str] = [] if bad is None else bad
    try:
        with path.open("rb") as file:
            for number, raw in enumerate(file, start=1):
                line = _without_mark(raw, path) if number == 1 else raw
                if not line.strip():
                    continue
                try:
                    document = _document(line)
                    _refuse_known(document.id, number, seen)
                except ValueError as error:
                    problems.append(f"line {number}: {error}")
                    if bad is None and len(problems) == SHOWN_PROBLEMS:
                        break
                    continue
                if bad is not None or not problems:
                    yield document
    except OSError as error:
        raise _unreadable(path, error) from error
    if bad is None and problems:
        raise DataError(
            f"Bad rows: {'; '.join(problems)}",
            where=str(path),
            remedy="Mend them, or leave them out with --skip-bad.",
        )


def _unreadable(path: Path, error: OSError) -> DataError:
    return DataError(f"Cannot read the file: {error.strerror or error}", where=str(path))


def _without_mark(line: bytes, path: Path) -> bytes:
    if line.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise DataError("The file is UTF-16", where=str(path), remedy="Save it as UTF-8.")
    return line.removeprefix(b"\xef\xbb\xbf")


def _refuse_known(id: str, number: int, seen: dict[str, int]) -> None:
    first = seen.setdefault(id, number)
    if first != number:
        raise ValueError(f"`id` {id!r} was used in line {first}")


def _document(line: bytes) -> Document:
    row = parse_row(line)
    text = _field(row, "text")
    if not text.strip():
        raise ValueError("`text` is empty")
    return Document(
        id=_id(row),
        title=_field(row, "title").strip(),
        text=text,
        url=_field(row, "url", ""),
        date=_field(row, "date", ""),
    )


def _id(row: dict[str, Any]) -> str:
    if type(row.get("id")) is int:
        return str(row["id"])
    text = _field(row, "id").strip()
    if not text:
        raise ValueError("`id` is empty")
    return text


def _field(row: dict[str, Any], name: str, default: str | None = None) -> str:
    value = row.get(name)
    if value is None:
        value = default
    if value is None:
        has = ", ".join(list(row)[:8])
        raise ValueError(f"`{name}` is missing (the row has: {has})")
    if not isinstance(value, str):
        raise ValueError(f"`{name}` must be a string, not {json_kind(value)}")
    return value
