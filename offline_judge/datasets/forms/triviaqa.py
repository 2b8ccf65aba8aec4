"""TriviaQA: quiz questions with an answer and its aliases."""

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
    question_of,
    unique,
)
from offline_judge.datasets.rows import DataFile, Row
from offline_judge.domain.sample import Metadata
from offline_judge.domain.strict_json import json_kind


class TriviaQa:
    """The published `.json` files (`Data`), and JSON Lines of the same in lower case.

    The answer comes first among the accepted ones, then all aliases and what people answered;
    the normalised spellings are left out, since they only repeat them.
    """

    name: ClassVar[str] = "triviaqa"
    title: ClassVar[str] = "TriviaQA"
    expects: ClassVar[str] = (
        "a JSON object whose `Data` is an array of objects with `QuestionId`, `Question` and "
        "`Answer`, or JSON Lines with `question_id`, `question` and `answer`"
    )

    def rows(self, file: DataFile) -> Iterator[Row]:
        """The entries of `Data`."""
        return checked(self.name, file.entries("Data"))

    def drafts(self, row: Row) -> Iterable[Draft | LeftOutError]:
        """One question."""
        columns = row.columns
        official = "Question" in columns
        question, key, answer, source = (
            ("Question", "QuestionId", "Answer", "QuestionSource")
            if official
            else ("question", "question_id", "answer", "question_source")
        )
        metadata: Metadata = {}
        if isinstance(columns.get(source), str):
            metadata["source"] = columns[source]
        yield Draft(
            id=id_of(columns.get(key)),
            question=question_of(columns, question),
            reference=_accepted(columns.get(answer), answer),
            metadata=metadata,
        )


def _accepted(answer: Any, name: str) -> tuple[str, ...]:
    if answer is None:  # the test files have none
        return ()
    if not isinstance(answer, dict):
        raise ValueError(f"`{name}` must be an object, not {json_kind(answer)}")
    lower = {key.lower().replace("_", ""): value for key, value in answer.items()}
    found = (answers_of(lower.get(part), part) for part in ("value", "aliases", "humananswers"))
    return unique(text for texts in found for text in texts)


FORM: type[Form] = TriviaQa
