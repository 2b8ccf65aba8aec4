"""A data file as a run would read it, before there is one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from offline_judge.datasets.readers import read_samples
from offline_judge.datasets.rows import DataFile as RawFile
from offline_judge.datasets.rows import WrongShapeError
from offline_judge.domain.sample import Sample
from offline_judge.errors import OfflineJudgeError
from offline_judge.jobs.orders import DataFile


@dataclass(frozen=True)
class Preview:
    """What a run would make of a data file.

    Attributes:
        columns: Names in the order in which the first rows have them.
        rows: The first rows as they stand, column to text.
        samples: The first samples that are read from it.
        total: Samples that can be read.
        labelled: Of these, samples with a label.
        problems: Rows that cannot be used, named, and why.
        notes: What else is left out.
        refusal: Why the file as a whole cannot be used; None where it can, bad rows apart.
    """

    columns: tuple[str, ...] = ()
    rows: tuple[dict[str, str], ...] = ()
    samples: tuple[Sample, ...] = ()
    total: int = 0
    labelled: int = 0
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    refusal: OfflineJudgeError | None = field(default=None, compare=False)


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
