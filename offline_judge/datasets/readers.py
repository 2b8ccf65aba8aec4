"""Data files in, samples out: JSON Lines, CSV and TSV."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from offline_judge.datasets import fields
from offline_judge.datasets.rows import DataFile, Row
from offline_judge.domain.run import DataSource
from offline_judge.domain.sample import Sample, derived_id
from offline_judge.errors import DataError

SHOWN_PROBLEMS = 5


@dataclass(frozen=True)
class Loaded:
    """A data file's samples in its order, where they come from, and the rows left out."""

    samples: tuple[Sample, ...]
    source: DataSource
    problems: tuple[str, ...] = ()


def read_samples(
    path: Path, *, mapping: Mapping[str, str] | None = None, skip_bad: bool = False
) -> Loaded:
    """Read all samples of a file, once, row by row.

    Fields are `question` and `response`, which may not be empty, and `id`, `reference`, `label`
    (see `offline_judge.datasets.fields`); all other columns become metadata. In CSV and TSV the
    first row names the columns, and accepted answers in `reference` are parted by `|`.

    A row without an id gets one from its content; where that is taken, `-2`, `-3` and so on is
    added. An id that a row brings itself may not have been used before.

    Args:
        path: Suffix .jsonl, .ndjson, .json (one object a line), .csv or .tsv.
        mapping: Field to column, where they are named differently.
        skip_bad: Leave bad rows out and report them instead of refusing the file.

    Returns:
        `source.rows` counts all rows that are not blank, the skipped ones included.

    Raises:
        UsageError: the mapping names an unknown field.
        DataError: the file cannot be read, lacks a column, holds no usable row, or holds bad
            rows: the first five are named by line and field, and all are counted.
    """
    mapping = dict(mapping or {})
    file = DataFile(path)
    collector = _Collector(file, mapping)
    rows = 0
    for row in file.rows():
        rows += 1
        collector.take(row)
    collector.check_mapping()
    problems = collector.problems
    if problems and not skip_bad:
        raise _bad_rows(path, problems, rows)
    if not rows:
        raise DataError("The data file holds no rows", where=str(path))
    if not collector.samples:
        raise DataError(f"None of {rows} rows can be used: {problems[0]}", where=str(path))
    source = DataSource(
        path=str(path.absolute()),
        sha256=file.sha256,
        format=file.format,
        rows=rows,
        skipped=len(problems),
        mapping=mapping,
    )
    return Loaded(tuple(collector.samples), source, tuple(problems))


@dataclass
class _Collector:
    """Turns rows into samples and keeps what is wrong with the others."""

    file: DataFile
    mapping: Mapping[str, str]
    samples: list[Sample] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._columns = fields.column_names(self.mapping)
        self._lines: dict[str, int] = {}
        self._checked = False
        self._seen: set[str] = set()

    def take(self, row: Row) -> None:
        """Add the row's sample or its problem.

        Raises:
            DataError: the file as a whole lacks a column.
        """
        if not self._checked and self.file.columns:
            self._check_columns()
        self._seen.update(row.columns)
        try:
            if row.problem:
                raise ValueError(row.problem)
            sample = self._sample(row)
        except ValueError as error:
            self.problems.append(f"line {row.line}: {error}")
            return
        self._lines[sample.id] = row.line
        self.samples.append(sample)

    def check_mapping(self) -> None:
        """Refuse a mapping to columns that no row has.

        Raises:
            DataError: names the field and its column.
        """
        for name, column in self.mapping.items():
            if self._seen and column not in self._seen:
                raise DataError(
                    f"No row has the column `{column}` that `{name}` is mapped to",
                    where=str(self.file.path),
                    remedy=f"Columns: {', '.join(sorted(self._seen))[:400]}.",
                )

    def _check_columns(self) -> None:
        self._checked = True
        has = self.file.columns
        needed = fields.missing_columns(self._columns, self.mapping)
        lacking = {name: column for name, column in needed.items() if column not in has}
        if lacking:
            names = ", ".join(f"`{column}`" for column in lacking.values())
            raise DataError(
                f"There is no column {names}; the first row names these: {', '.join(has)[:400]}",
                where=str(self.file.path),
                remedy=_remedy(lacking, has),
            )

    def _sample(self, row: Row) -> Sample:
        given = {name: row.columns.get(column) for name, column in self._columns.items()}
        for name in fields.REQUIRED:
            if self._columns.get(name) not in row.columns:
                raise ValueError(self._missing(name, row))
        question = fields.text_of(given["question"], "question")
        response = fields.text_of(given["response"], "response")
        return Sample(
            id=self._id(fields.id_of(given.get("id")), question, response),
            question=question,
            response=response,
            reference=fields.reference_of(
                given.get("reference"), split=self.file.format != "jsonl"
            ),
            label=fields.label_of(given.get("label")),
            metadata=fields.metadata_of(row.columns, set(self._columns.values())),
        )

    def _missing(self, name: str, row: Row) -> str:
        has = ", ".join(row.columns)[:200] or "nothing"
        hint = fields.map_hint([name], row.columns)
        column = self._columns.get(name, name)
        return f"`{column}` is missing (the row has: {has}). {hint}".strip()

    def _id(self, own: str | None, question: str, response: str) -> str:
        if own is not None:
            if own in self._lines:
                raise ValueError(f"`id` {own!r} was used in line {self._lines[own]}")
            return own
        base = unique = derived_id(question, response)
        number = 1
        while unique in self._lines:
            number += 1
            unique = f"{base}-{number}"
        return unique


def _remedy(lacking: Mapping[str, str], columns: tuple[str, ...]) -> str:
    if len(columns) == 1 and ";" in columns[0]:
        return "Separate columns by commas."
    if len(columns) == 1 and "\t" in columns[0]:
        return "Name the file .tsv."
    return fields.map_hint(lacking, columns) or "The first row must name the columns."


def _bad_rows(path: Path, problems: list[str], rows: int) -> DataError:
    shown = "; ".join(problem.rstrip(".") for problem in problems[:SHOWN_PROBLEMS])
    more = f"; and {len(problems) - SHOWN_PROBLEMS} more" if len(problems) > SHOWN_PROBLEMS else ""
    return DataError(
        f"{len(problems)} of {rows} rows cannot be used: {shown}{more}.",
        where=str(path),
        remedy="Mend them, or leave them out with --skip-bad.",
    )
