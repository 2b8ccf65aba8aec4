"""Responses out of a file of their own, joined to questions by id or by the question itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from offline_judge.datasets.fields import id_of, text_of
from offline_judge.datasets.rows import DataFile, Row, WrongShapeError
from offline_judge.domain.run import ResponseSource
from offline_judge.domain.sample import Sample
from offline_judge.domain.strict_json import json_kind
from offline_judge.errors import DataError

RESPONSE = ("response", "prediction")
"""Columns that may hold the response, the first that is there."""

_SHOWN = 3


@dataclass(frozen=True)
class Response:
    """One response to one question, and by which system where the file says so."""

    text: str
    system: str
    place: str


@dataclass(frozen=True)
class Responses:
    """A file of responses.

    Attributes:
        path: The file.
        source: Where they come from.
        by: `id` or `question`: what they are joined by.
        found: Key to its responses, in the file's order.
        problems: Rows that cannot be used.
    """

    path: Path
    source: ResponseSource
    by: str
    found: Mapping[str, Sequence[Response]]
    problems: tuple[str, ...]


@dataclass(frozen=True)
class Joined:
    """Samples with their responses, what the two files do not share, and what went wrong."""

    samples: tuple[Sample, ...]
    unanswered: tuple[str, ...]
    unknown: tuple[str, ...]
    problems: tuple[str, ...]


def read_responses(path: Path) -> Responses:
    """Read responses: `id` (else `question`), `response` (or `prediction`), perhaps `system`.

    Raises:
        DataError: the file cannot be read, or has no such columns.
    """
    file = DataFile(path)
    collector = _Collector(path)
    try:
        for row in file.rows():
            collector.take(row)
    except WrongShapeError as error:
        raise DataError(
            f"The responses are {error.found}",
            where=str(path),
            remedy="Give JSON Lines or CSV with `id` and `response`.",
        ) from error
    if not collector.rows:
        raise DataError("The file of responses holds no rows", where=str(path))
    source = ResponseSource(path=str(path.absolute()), sha256=file.sha256, rows=collector.rows)
    return Responses(path, source, collector.by or "id", collector.found, tuple(collector.problems))


def join(samples: Iterable[Sample], responses: Responses) -> Joined:
    """Give each sample its responses: one sample a response, and none to those without.

    A response of a system makes the sample `<id>-<system>`.
    """
    joined: dict[str, Sample] = {}
    unanswered, problems = [], []
    used: set[str] = set()
    for sample in samples:
        key = sample.id if responses.by == "id" else question_key(sample.question)
        used.add(key)
        found = responses.found.get(key, ())
        if not found:
            unanswered.append(sample.id)
        for response in found:
            answered = _answered(sample, response)
            if answered.id in joined:
                problems.append(f"{response.place}: two samples would be called `{answered.id}`")
                continue
            joined[answered.id] = answered
    unknown = tuple(key for key in responses.found if key not in used)
    return Joined(tuple(joined.values()), tuple(unanswered), unknown, tuple(problems))


def question_key(question: str) -> str:
    """A question as it is compared: without case, blanks and a last question mark."""
    return " ".join(question.casefold().rstrip("? ").split())


def named(names: Sequence[str]) -> str:
    """The first few of many names."""
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(f"`{name[:60]}`" for name in names[:_SHOWN]) + more


@dataclass
class _Collector:
    path: Path
    rows: int = 0
    by: str = ""
    column: str = ""
    found: dict[str, list[Response]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def take(self, row: Row) -> None:
        """Take a row in.

        Raises:
            DataError: the first sound row has not the columns that are needed.
        """
        self.rows += 1
        try:
            if row.problem:
                raise ValueError(row.problem)
            if not self.by:
                self._look(row.columns)
            self._add(row)
        except ValueError as error:
            self.problems.append(f"{row.place}: {error}")

    def _look(self, columns: Mapping[str, Any]) -> None:
        by = next((name for name in ("id", "question") if name in columns), "")
        column = next((name for name in RESPONSE if name in columns), "")
        if not by or not column:
            has = ", ".join(columns)[:200] or "nothing"
            raise DataError(
                f"The responses need `id` (or `question`) and `response`; a row has: {has}",
                where=str(self.path),
            )
        self.by, self.column = by, column

    def _add(self, row: Row) -> None:
        columns = row.columns
        key = id_of(columns.get("id")) if self.by == "id" else _question(columns)
        if key is None:
            raise ValueError("`id` is missing")
        system = columns.get("system")
        if system is not None and not isinstance(system, str):
            raise ValueError(f"`system` must be text, not {json_kind(system)}")
        text = text_of(columns.get(self.column), self.column)
        response = Response(text, (system or "").strip(), row.place)
        before = self.found.setdefault(key, [])
        if any(other.system == response.system for other in before):
            raise ValueError(
                f"a second response for {self.by} {key[:60]!r}; a `system` column would tell "
                "them apart"
            )
        before.append(response)


def _question(columns: Mapping[str, Any]) -> str:
    return question_key(text_of(columns.get("question"), "question"))


def _answered(sample: Sample, response: Response) -> Sample:
    changes: dict[str, Any] = {"response": response.text}
    if response.system:
        changes["id"] = f"{sample.id}-{response.system}"
        changes["metadata"] = {**sample.metadata, "system": response.system}
    return sample.model_copy(update=changes)
