"""Reading a data file as a run would, to say what is wrong instead of refusing it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from offline_judge.datasets.readers import read_samples
from offline_judge.datasets.rows import DataFile as RawFile
from offline_judge.datasets.rows import WrongShapeError
from offline_judge.domain.previews import Preview
from offline_judge.errors import OfflineJudgeError
from offline_judge.jobs.orders import DataFile


def preview(data: DataFile, *, unanswered: bool, rows: int) -> Preview:
    """Read a data file as `begin` would, and say what is wrong instead of refusing it.

    Args:
        data: The file and how to read it.
        unanswered: Responses that are missing will be written.
        rows: How many rows and samples to give.
    """
    first = tuple(_raw_rows(data, rows))
    columns = tuple(dict.fromkeys(name for row in first for name in row))
    try:
        loaded = read_samples(
            data.path,
            mapping={name: column for column, name in data.mapping.items()},
            skip_bad=True,
            form=data.form,
            responses=data.responses,
            unanswered=unanswered,
        )
    except OfflineJudgeError as error:
        return Preview(columns, first, refusal=error)
    return Preview(
        columns,
        first,
        samples=loaded.samples[:rows],
        total=len(loaded.samples),
        labelled=sum(sample.label is not None for sample in loaded.samples),
        problems=loaded.problems,
        notes=loaded.notes,
    )


def _raw_rows(data: DataFile, number: int) -> Iterator[dict[str, str]]:
    """The first rows as they stand; none of a file that has no rows of its own."""
    try:
        for row in islice(RawFile(data.path).rows(), number):
            yield {name: _text(value) for name, value in row.columns.items()}
    except (OfflineJudgeError, WrongShapeError):
        return


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else repr(value)
