"""Where the passage that holds the answer is known: when a search found it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from offline_judge.datasets.fields import text_of
from offline_judge.datasets.rows import DataFile, Row, WrongShapeError
from offline_judge.domain.columns import identifier
from offline_judge.domain.events import AnyEvent, RoundFinished, SampleStarted, SearchFinished
from offline_judge.errors import DataError

_ID_COLUMNS = ("gold_passage_id", "passage_id", "passage", "gold")


class Gold:
    """Question to the ids of the passages that hold its answer; only of those in the corpus.

    Args:
        passages: Question to ids of passages or of their documents.
    """

    def __init__(self, passages: Mapping[str, Iterable[str]]) -> None:
        self._passages = {_normal(question): set(ids) for question, ids in passages.items()}

    def of(self, question: str) -> set[str]:
        """The ids of a question; empty where it has none."""
        return self._passages.get(_normal(question), set())


def read_gold(path: Path) -> Gold:
    """Read rows of `question` and `gold_passage_id` (or `passage_id`, `passage`, `gold`).

    The file is one that data may be in, too: JSONL, CSV or TSV, gzipped or not. JSON may have a
    list of ids in a row.

    Raises:
        DataError: it cannot be read, or a row lacks one of the two.
    """
    passages: dict[str, set[str]] = {}
    try:
        for row in DataFile(path).rows():
            question, ids = _gold(row)
            passages.setdefault(question, set()).update(ids)
    except WrongShapeError as error:
        raise DataError(
            f"The file of gold passages is {error.found}.",
            where=str(path),
            remedy=f"Write one object a line: jq -c '.[]' {path.name} > gold.jsonl",
        ) from None
    except ValueError as error:
        raise DataError(f"Cannot read gold passages: {error}", where=str(path)) from None
    return Gold(passages)


def gold_rounds(events: Iterable[AnyEvent], gold: Gold) -> dict[str, int | None]:
    """Sample id to the first round that took a passage with the answer.

    0 where no round did; None where no such passage is known. A round took what its record says;
    where a method records no rounds, what its searches found.
    """
    wanted: dict[str, set[str]] = {}
    hits: dict[str, dict[int, dict[str, str]]] = {}
    taken: dict[str, dict[int, set[str]]] = {}
    for event in events:
        sample = event.sample_id
        match event:
            case SampleStarted():
                wanted[sample] = gold.of(event.sample.question)
                hits[sample], taken[sample] = {}, {}
            case SearchFinished():
                found = {hit.passage.id: hit.passage.document_id for hit in event.hits}
                hits.setdefault(sample, {}).setdefault(event.round, {}).update(found)
            case RoundFinished():
                taken.setdefault(sample, {})[event.round] = set(event.evidence.values())
    return {
        sample: _first(ids, hits.get(sample, {}), taken.get(sample, {})) if ids else None
        for sample, ids in wanted.items()
    }


def _first(
    wanted: set[str], hits: Mapping[int, Mapping[str, str]], taken: Mapping[int, set[str]]
) -> int:
    documents = {
        passage: document for found in hits.values() for passage, document in found.items()
    }
    for place, number in enumerate(sorted(hits.keys() | taken.keys()), 1):
        passages = taken[number] if number in taken else hits[number].keys()
        if any(name in wanted or documents.get(name) in wanted for name in passages):
            return place
    return 0


def _gold(row: Row) -> tuple[str, set[str]]:
    """A row's question and the passages that hold its answer.

    Raises:
        ValueError: the row cannot be used.
    """
    try:
        if row.problem:
            raise ValueError(row.problem)
        question = text_of(row.columns.get("question"), "question")
        given = (row.columns.get(name) for name in _ID_COLUMNS)
        for ids in (_ids(value) for value in given):
            if ids:
                return question, ids
        raise ValueError("`gold_passage_id` is missing")
    except ValueError as error:
        raise ValueError(f"{row.place}: {error}") from None


def _ids(value: Any) -> set[str]:
    found = (identifier(one) for one in (value if isinstance(value, list) else [value]))
    return {one for one in found if one is not None}


def _normal(question: str) -> str:
    return " ".join(question.casefold().split()).rstrip(" ?")
