"""HotpotQA: questions that need two documents, with one answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import ClassVar

from offline_judge.datasets.fields import id_of
from offline_judge.datasets.forms.base import (
    Draft,
    Form,
    LeftOutError,
    answers_of,
    checked,
    kept,
    question_of,
)
from offline_judge.datasets.rows import DataFile, Row


class HotpotQa:
    """The training and development files, and the test file, which has no answers.

    Kind (`type`) and `level` of the question are kept; the paragraphs are not.
    """

    name: ClassVar[str] = "hotpotqa"
    title: ClassVar[str] = "HotpotQA"
    expects: ClassVar[str] = "a JSON array of objects with `_id`, `question` and `answer`"

    def rows(self, file: DataFile) -> Iterator[Row]:
        """The entries of the array."""
        return checked(self.name, file.entries())

    def drafts(self, row: Row) -> Iterable[Draft | LeftOutError]:
        """One question."""
        columns = row.columns
        yield Draft(
            id=id_of(columns.get("_id")),
            question=question_of(columns),
            reference=answers_of(columns.get("answer"), "answer"),
            metadata=kept(columns, "type", "level"),
        )


FORM: type[Form] = HotpotQa
