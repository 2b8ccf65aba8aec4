"""What is judged: one question with one response."""

from __future__ import annotations

from pydantic import Field

from offline_judge.domain.base import Frozen, content_hash

Metadata = dict[str, str | int | float | bool | None]


class Sample(Frozen):
    """One response to judge.

    Attributes:
        id: Unique in its data file; derived from content where the file has none.
        question: What was asked.
        response: The text that answers it.
        reference: Accepted answers, for methods that are shown the key.
        label: What people said (true: correct), where known.
        metadata: All other columns of the row, flat.
    """

    id: str
    question: str
    response: str
    reference: tuple[str, ...] = ()
    label: bool | None = None
    metadata: Metadata = Field(default_factory=dict)

    def content_key(self) -> str:
        """Hash of what a judge may see; two samples with the same key need one judgment."""
        return content_hash([self.question, self.response, list(self.reference)])

    def question_key(self) -> str:
        """Hash of the question alone; samples that share it share their first search."""
        return content_hash([self.question])


def derived_id(question: str, response: str) -> str:
    """The id of a row that brings none: 12 hex digits of its content's hash."""
    return content_hash([question, response])[:12]
