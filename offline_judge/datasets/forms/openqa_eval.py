"""OpenQA-eval: answers of open-domain systems, with the judgments of people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import ClassVar

from offline_judge.datasets.fields import id_of, label_of, needed, text_of
from offline_judge.datasets.forms.base import (
    Draft,
    Form,
    LeftOutError,
    answers_of,
    checked,
    question_of,
)
from offline_judge.datasets.forms.signs import SIGNS
from offline_judge.datasets.rows import DataFile, Row, Table

_ANNOTATOR = "annotator"


class OpenQaEval:
    """The table of human judgments, or a file of a system's predictions.

    The table (`NQ301_human.tsv`) has no accepted answers, and its cells are not quoted; several
    answers share the id of their question. A file of predictions (JSON Lines) has accepted
    answers and no judgments.
    """

    name: ClassVar[str] = "openqa-eval"
    title: ClassVar[str] = "OpenQA-eval"
    expects: ClassVar[str] = (
        "a table of tabs with `id`, `Question`, `Model answer` and `Acceptable?`, or JSON Lines "
        "with `question`, `answer` and `prediction`"
    )

    def rows(self, file: DataFile) -> Iterator[Row]:
        """The rows of the table, or the lines."""
        if file.format == "jsonl":
            return checked(self.name, file.entries())
        return file.table(Table(quoted=False, header=SIGNS[self.name][0]))

    def drafts(self, row: Row) -> Iterable[Draft | LeftOutError]:
        """One answer."""
        yield _judged(row) if "Model answer" in row.columns else _predicted(row)


def _judged(row: Row) -> Draft:
    columns = row.columns
    number = id_of(columns.get("id"))
    said = [
        value.strip()
        for name, value in columns.items()
        if name.startswith(_ANNOTATOR) and isinstance(value, str) and value.strip()
    ]
    return Draft(
        question=question_of(columns, "Question"),
        response=text_of(columns["Model answer"], "Model answer"),
        stem=number or "",
        label=label_of(needed(columns, "Acceptable?")),
        metadata={"question_id": number, "annotators": " ".join(said)},
    )


def _predicted(row: Row) -> Draft:
    columns = row.columns
    predicted = needed(columns, "prediction")
    if isinstance(predicted, list):  # the best one comes first
        predicted = predicted[0] if predicted else None
    return Draft(
        id=id_of(columns.get("id")),
        question=question_of(columns),
        response=text_of(predicted, "prediction"),
        reference=answers_of(needed(columns, "answer"), "answer"),
    )


FORM: type[Form] = OpenQaEval
