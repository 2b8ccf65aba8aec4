"""NQ-open: questions of Natural Questions with short accepted answers."""

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
    question_of,
)
from offline_judge.datasets.rows import DataFile, Row

_WIDER = "answer_and_def_correct_predictions"


class NqOpen:
    """`NQ-open.*.jsonl`, the EfficientQA files, and AmbigQA's `nqopen-*.json`.

    Where the file tells answers that people found correct afterwards, those are accepted too.
    """

    name: ClassVar[str] = "nq-open"
    title: ClassVar[str] = "NQ-open"
    expects: ClassVar[str] = "JSON Lines or a JSON array with `question` and `answer`"

    def rows(self, file: DataFile) -> Iterator[Row]:
        """The lines, or the entries of the array."""
        return checked(self.name, file.entries())

    def drafts(self, row: Row) -> Iterable[Draft | LeftOutError]:
        """One question."""
        columns = row.columns
        name = _WIDER if columns.get(_WIDER) else "answer"
        yield Draft(
            id=id_of(columns.get("id")),
            question=question_of(columns),
            reference=answers_of(columns.get(name), name),
        )


FORM: type[Form] = NqOpen
