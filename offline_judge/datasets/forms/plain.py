"""The program's own form: rows whose columns are the fields of a sample, or are mapped to them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from offline_judge.datasets import fields
from offline_judge.datasets.forms.base import Draft, LeftOutError, first_row
from offline_judge.datasets.forms.signs import hint
from offline_judge.datasets.rows import DataFile, Row, WrongShapeError
from offline_judge.errors import DataError


class Plain:
    """JSON Lines, CSV or TSV; `question` and `response`, then `id`, `reference`, `label`.

    Args:
        mapping: Field to column, where they are named differently.
        unanswered: Rows may lack a response.
    """

    def __init__(self, mapping: Mapping[str, str], *, unanswered: bool = False) -> None:
        self._mapping = mapping
        self._columns = fields.column_names(mapping)
        self._unanswered = unanswered
        self._required = ("question",) if unanswered else fields.REQUIRED
        self._seen: set[str] = set()
        self._split = False

    def rows(self, file: DataFile) -> Iterator[Row]:
        """All rows, after a look at the header where there is one.

        Raises:
            DataError: the file as a whole cannot be read or lacks a column.
        """
        self._split = file.format != "jsonl"
        rows = file.rows()
        try:
            for number, row in enumerate(rows):
                if not number and file.columns:
                    self._check_columns(file)
                self._seen.update(row.columns)
                yield row
        except WrongShapeError as error:
            raise _an_array(file) from error
        except DataError:
            if file.columns:  # that they are others explains best why the rest cannot be read
                self._check_columns(file)
            raise
        self._check_mapping(file)

    def drafts(self, row: Row) -> Iterable[Draft | LeftOutError]:
        """The row's one sample.

        Raises:
            ValueError: the row cannot be used.
        """
        given = {name: row.columns.get(column) for name, column in self._columns.items()}
        for name in self._required:
            if self._columns.get(name) not in row.columns:
                raise ValueError(self._missing(name, row))
        response = given.get("response")
        blank = response is None or (isinstance(response, str) and not response.strip())
        yield Draft(
            question=fields.text_of(given["question"], "question"),
            response=None if blank and self._unanswered else fields.text_of(response, "response"),
            id=fields.id_of(given.get("id")),
            reference=fields.reference_of(given.get("reference"), split=self._split),
            label=fields.label_of(given.get("label")),
            metadata=fields.metadata_of(row.columns, set(self._columns.values())),
        )

    def _check_columns(self, file: DataFile) -> None:
        has = file.columns
        needed = fields.missing_columns(self._columns, self._mapping, self._required)
        lacking = {name: column for name, column in needed.items() if column not in has}
        if lacking:
            names = ", ".join(f"`{column}`" for column in lacking.values())
            raise DataError(
                f"There is no column {names}; the first row names these: {', '.join(has)[:400]}",
                where=str(file.path),
                remedy=_remedy(lacking, has),
            )

    def _check_mapping(self, file: DataFile) -> None:
        """Refuse a mapping to columns that no row has."""
        for name, column in self._mapping.items():
            if self._seen and column not in self._seen:
                raise DataError(
                    f"No row has the column `{column}` that `{name}` is mapped to",
                    where=str(file.path),
                    remedy=f"Columns: {', '.join(sorted(self._seen))[:400]}.",
                )

    def _missing(self, name: str, row: Row) -> str:
        has = ", ".join(row.columns)[:200] or "nothing"
        advice = hint(row.columns) or fields.map_hint([name], row.columns)
        column = self._columns.get(name, name)
        return f"`{column}` is missing (the row has: {has}). {advice}".strip()


def _remedy(lacking: Mapping[str, str], columns: tuple[str, ...]) -> str:
    if len(columns) == 1 and "\t" in columns[0]:
        return "Name the file .tsv."
    form = hint(dict.fromkeys(columns, ""))
    if not form and lacking.keys() == {"response"}:
        form = "Or join responses with --responses FILE, or have them written: --candidate NAME."
    mapped = fields.map_hint(lacking, columns)
    return f"{mapped} {form}".strip() or "The first row must name the columns."


def _an_array(file: DataFile) -> DataError:
    convert = f"Convert it with `jq -c '.[]' {file.path.name} > rows.jsonl`."
    return DataError(
        "The file is one JSON array, not one object a line",
        where=str(file.path),
        remedy=hint(first_row(file.path)) or convert,
    )
