"""Natural Questions in its original and its simplified form, with the page it was asked of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar

from offline_judge.datasets.fields import id_of
from offline_judge.datasets.forms.base import (
    Draft,
    Form,
    LeftOutError,
    checked,
    kept,
    objects_of,
    question_of,
    unique,
)
from offline_judge.datasets.rows import DataFile, Row

Span = Callable[[int, int], str]


class NaturalQuestions:
    """`simplified-nq-*.jsonl` and the original `nq-*.jsonl`, gzipped or not.

    Each short answer of each annotator is an accepted answer, and so is a yes or a no; a question
    with neither has none. The page itself is left out, its address is kept.
    """

    name: ClassVar[str] = "natural-questions"
    title: ClassVar[str] = "Natural Questions"
    expects: ClassVar[str] = (
        "JSON Lines with `example_id`, `question_text`, `annotations` and `document_text` "
        "or `document_tokens`"
    )

    def rows(self, file: DataFile) -> Iterator[Row]:
        """The lines, or the entries of an array."""
        return checked(self.name, file.entries())

    def drafts(self, row: Row) -> Iterable[Draft | LeftOutError]:
        """One question."""
        columns = row.columns
        span = _spans(columns)
        answers = (
            answer
            for annotation in objects_of(columns, "annotations")
            for answer in _accepted(annotation, span)
        )
        yield Draft(
            id=id_of(columns.get("example_id")),
            question=question_of(columns, "question_text"),
            reference=unique(answers),
            metadata=kept(columns, "document_url", "document_title"),
        )


def _spans(columns: Mapping[str, Any]) -> Span:
    """How a stretch of the page's tokens is read; tokens are parted by single blanks.

    Raises:
        ValueError: the row has no page.
    """
    text = columns.get("document_text")
    if isinstance(text, str):
        words = text.split(" ")
        return lambda start, end: " ".join(words[start:end])
    tokens = objects_of(columns, "document_tokens")
    if not tokens:
        raise ValueError("neither `document_text` nor `document_tokens`, where the answers are")

    def original(start: int, end: int) -> str:
        seen = (token for token in tokens[start:end] if not token.get("html_token"))
        return " ".join(str(token.get("token", "")) for token in seen)

    return original


def _accepted(annotation: Mapping[str, Any], span: Span) -> Iterator[str]:
    for answer in objects_of(annotation, "short_answers"):
        start, end = answer.get("start_token"), answer.get("end_token")
        if not isinstance(start, int) or not isinstance(end, int):
            raise ValueError("a short answer without `start_token` and `end_token`")
        if 0 <= start < end:
            yield span(start, end)
    said = str(annotation.get("yes_no_answer", "NONE")).lower()
    if said in ("yes", "no"):
        yield said


FORM: type[Form] = NaturalQuestions
