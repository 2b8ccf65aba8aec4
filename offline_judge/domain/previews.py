"""A data file as a run would read it, before there is one."""

from __future__ import annotations

from dataclasses import dataclass, field

from offline_judge.domain.sample import Sample
from offline_judge.errors import OfflineJudgeError


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
