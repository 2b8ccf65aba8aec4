"""AmbigQA (AmbigNQ): questions with one answer or several readings, by several annotators."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from offline_judge.datasets.fields import id_of
from offline_judge.datasets.forms.base import (
    Draft,
    Form,
    LeftOutError,
    answers_of,
    checked,
    kept,
    objects_of,
    question_of,
    unique,
)
from offline_judge.datasets.rows import DataFile, Row
from offline_judge.domain.sample import Metadata


class AmbigQa:
    """`train.json`, `dev.json` and their light versions.

    What any annotator accepted for any reading of the question is an accepted answer; `type` in
    the metadata says whether they saw one answer (`singleAnswer`), several readings
    (`multipleQAs`), or did not agree (`mixed`).
    """

    name: ClassVar[str] = "ambigqa"
    title: ClassVar[str] = "AmbigQA"
    expects: ClassVar[str] = "a JSON array of objects with `id`, `question` and `annotations`"

    def rows(self, file: DataFile) -> Iterator[Row]:
        """The entries of the array."""
        return checked(self.name, file.entries())

    def drafts(self, row: Row) -> Iterable[Draft | LeftOutError]:
        """One question."""
        columns = row.columns
        annotations = objects_of(columns, "annotations")
        kinds = {str(annotation.get("type")) for annotation in annotations}
        metadata: Metadata = kept(columns, "nq_doc_title")
        if kinds:
            metadata["type"] = kinds.pop() if len(kinds) == 1 else "mixed"
        yield Draft(
            id=id_of(columns.get("id")),
            question=question_of(columns),
            reference=unique(answer for one in annotations for answer in _accepted(one)),
            metadata=metadata,
        )


def _accepted(annotation: dict[str, Any]) -> Iterator[str]:
    yield from answers_of(annotation.get("answer"), "answer")
    for pair in objects_of(annotation, "qaPairs"):
        yield from answers_of(pair.get("answer"), "answer")


FORM: type[Form] = AmbigQa
