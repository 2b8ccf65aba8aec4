"""FreshQA: questions whose answers change, with the date and kind of each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import ClassVar

from offline_judge.datasets.fields import id_of
from offline_judge.datasets.forms.base import (
    Draft,
    Form,
    LeftOutError,
    kept,
    question_of,
    unique,
)
from offline_judge.datasets.forms.signs import SIGNS
from offline_judge.datasets.rows import DataFile, Row, Table
from offline_judge.domain.sample import Metadata

_KEPT = (
    "split",
    "effective_year",
    "next_review",
    "num_hops",
    "fact_type",
    "source",
    "note",
)
_RESPONSE = "model_response"


class FreshQa:
    """The CSV of a release: notes above the header, up to ten accepted answers in columns.

    Split, effective year, next review, hops, kind of fact and `false_premise` (true or false) are
    kept as metadata. A `model_response` column, as the authors' evaluation asks for, is taken as
    the response.
    """

    name: ClassVar[str] = "freshqa"
    title: ClassVar[str] = "FreshQA"
    expects: ClassVar[str] = (
        "a CSV with a header, perhaps below notes, that names `question`, `effective_year`, "
        "`false_premise` and `answer_0`"
    )

    def rows(self, file: DataFile) -> Iterator[Row]:
        """The rows below the header."""
        return file.table(Table(header=SIGNS[self.name][0]))

    def drafts(self, row: Row) -> Iterable[Draft | LeftOutError]:
        """One question."""
        columns = row.columns
        response = columns.get(_RESPONSE)
        if response is not None and not response.strip():
            raise ValueError(f"`{_RESPONSE}` is empty")
        metadata: Metadata = kept(columns, *_KEPT)
        metadata["false_premise"] = _truth(columns["false_premise"])
        answers = (value for name, value in columns.items() if name.startswith("answer_"))
        yield Draft(
            id=id_of(columns.get("id")),
            question=question_of(columns),
            response=response,
            reference=unique(answers),
            metadata=metadata,
        )


def _truth(cell: str) -> bool | None:
    known = {"true": True, "false": False, "": None}
    word = cell.strip().lower()
    if word not in known:
        raise ValueError(f"`false_premise` is {cell[:20]!r}, neither TRUE nor FALSE")
    return known[word]


FORM: type[Form] = FreshQa
