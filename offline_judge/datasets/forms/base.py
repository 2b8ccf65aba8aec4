"""What a form gives: drafts of samples, out of the rows of a published file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol

from offline_judge.datasets.fields import text_of
from offline_judge.datasets.forms.signs import fits
from offline_judge.datasets.rows import DataFile, Row, WrongShapeError
from offline_judge.domain.sample import Metadata
from offline_judge.domain.strict_json import json_kind
from offline_judge.errors import DataError


@dataclass(frozen=True)
class Draft:
    """A sample as a file has it.

    Attributes:
        question: What was asked.
        response: What answers it; None where the set has questions only.
        id: The file's own id, None where it has none.
        stem: What an id is made of where the file has none; "" for question and response.
        reference: Accepted answers.
        label: What people said.
        metadata: All else that is kept.
    """

    question: str
    response: str | None = None
    id: str | None = None
    stem: str = ""
    reference: tuple[str, ...] = ()
    label: bool | None = None
    metadata: Metadata = field(default_factory=dict)


class LeftOutError(Exception):
    """A sound row, or part of one, that is no sample; the text says why."""


class Form(Protocol):
    """The form of one public set."""

    name: ClassVar[str]
    title: ClassVar[str]
    expects: ClassVar[str]
    """For people: what a file of this form is and has."""

    def rows(self, file: DataFile) -> Iterator[Row]:
        """The file's rows.

        Raises:
            DataError: the file cannot be read.
            WrongShapeError: it is not of this form.
        """

    def drafts(self, row: Row) -> Iterable[Draft | LeftOutError]:
        """The samples of a row, and what of it is left out.

        Raises:
            ValueError: the row cannot be used.
        """


def checked(name: str, rows: Iterable[Row]) -> Iterator[Row]:
    """Rows as they come, after a look at the first sound one.

    Raises:
        WrongShapeError: it lacks what tells this form from others.
    """
    known = False
    for row in rows:
        if not known and not row.problem:
            if not fits(name, row.columns):
                found = ", ".join(row.columns)[:200] or "nothing"
                raise WrongShapeError(f"a row with {found}", row.columns)
            known = True
        yield row


def first_row(path: Path) -> dict[str, Any]:
    """The columns of a JSON file's first entry, wherever they stand; empty where there is none."""
    for key in ("", "Data"):
        with suppress(WrongShapeError, DataError):
            found = next(iter(DataFile(path).entries(key)), None)
            if found is not None and found.columns and "Data" not in found.columns:
                return found.columns
    return {}


def question_of(columns: Mapping[str, Any], name: str = "question") -> str:
    """The question of a row.

    Raises:
        ValueError: it is missing, empty or no text.
    """
    return text_of(columns.get(name), name).strip()


def answers_of(value: Any, name: str) -> tuple[str, ...]:
    """A text or a list of texts as accepted answers, each once, blanks and null left out.

    Raises:
        ValueError: anything else.
    """
    answers = value if isinstance(value, list) else [value]
    texts = []
    for answer in answers:
        if answer is None:
            continue
        if isinstance(answer, bool) or not isinstance(answer, str | int | float):
            raise ValueError(f"`{name}` must be text or a list of texts, not {json_kind(answer)}")
        texts.append(str(answer))
    return unique(texts)


def objects_of(columns: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """A list of objects in a row; empty where it is absent.

    Raises:
        ValueError: anything else.
    """
    value = columns.get(name)
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise ValueError(f"`{name}` must be a list of objects")
    return value


def unique(texts: Iterable[str]) -> tuple[str, ...]:
    """Texts without outer blanks, each once, in order."""
    return tuple(dict.fromkeys(text.strip() for text in texts if text.strip()))


def kept(columns: Mapping[str, Any], *names: str) -> Metadata:
    """Columns that are there and not blank, as metadata."""
    found = {name: columns.get(name) for name in names}
    return {
        name: value
        for name, value in found.items()
        if isinstance(value, str | int | float) and value != ""
    }
