"""Labels that people gave, read from a file of rows and settled where several gave them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, Protocol

from offline_judge.domain.columns import identifier, truth
from offline_judge.errors import DataError, UsageError

FIELDS = ("id", "label")
SHOWN_PROBLEMS = 5
_PARTED = "|"
_USUAL = {
    "id": ("sample", "sample_id", "question_id", "qid", "uid", "key"),
    "label": ("annotators", "annotations", "judgment", "judgement", "correct", "acceptable"),
}


class RowOfLabels(Protocol):
    """A row of a file: where it stands, and its columns or what is wrong with it."""

    @property
    def place(self) -> str:
        """`line 3`."""

    @property
    def columns(self) -> dict[str, Any]:
        """Column to cell."""

    @property
    def problem(self) -> str:
        """Why it cannot be read."""


@dataclass(frozen=True)
class LabelSet:
    """What people said, a label a sample.

    Attributes:
        labels: Sample id to label.
        ties: Ids of samples whose annotators are of two minds; they have no label.
        several: Samples that more than one annotator labelled, ties included.
        blank: Ids whose rows hold no label.
        problems: Rows left out because they cannot be read.
    """

    labels: Mapping[str, bool]
    ties: tuple[str, ...] = ()
    several: int = 0
    blank: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


@dataclass
class _Votes:
    """What was read so far."""

    by_id: dict[str, list[bool]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    kinds: set[str] = field(default_factory=set)
    rows: int = 0


def label_columns(mapping: Mapping[str, str]) -> tuple[str, tuple[str, ...]]:
    """The column of ids, and the columns that each hold one annotator's labels.

    Args:
        mapping: Column to field, `id` or `label`; several columns may be `label`.

    Raises:
        UsageError: another field, or two columns of ids.
    """
    for column, name in mapping.items():
        if name not in FIELDS:
            raise UsageError(
                f"`{name}` is no field of a label",
                where=f"--map {column}={name}",
                remedy="Fields: id, label.",
            )
    ids = [column for column, name in mapping.items() if name == "id"]
    if len(ids) > 1:
        raise UsageError(f"Two columns are mapped to `id`: {', '.join(ids)}")
    labels = tuple(column for column, name in mapping.items() if name == "label")
    return (ids[0] if ids else "id", labels or ("label",))


def read_labels(
    rows: Iterable[RowOfLabels], where: str, mapping: Mapping[str, str], *, skip_bad: bool = False
) -> LabelSet:
    """Read labels and settle them: the majority of a sample's annotators, none where they tie.

    Annotators are rows of the same id, several columns mapped to `label`, the entries of a list,
    or the parts of a text like `yes|no|yes`.

    Args:
        rows: Of the file, in its order.
        where: The file, for messages.
        mapping: Column to field.
        skip_bad: Leave bad rows out instead of refusing the file.

    Raises:
        UsageError: the mapping names another field.
        DataError: bad rows, no rows, or no label in any of them.
    """
    id_column, columns = label_columns(mapping)
    votes = _Votes()
    for row in rows:
        votes.rows += 1
        try:
            if row.problem:
                raise ValueError(row.problem)
            name, given = _row(row.columns, id_column, columns)
        except ValueError as error:
            votes.problems.append(f"{row.place}: {error}")
            votes.kinds.add(str(error))
            continue
        votes.by_id.setdefault(name, []).extend(given)
    _refuse_shape(votes, where)
    if votes.problems and not skip_bad:
        raise _bad_rows(votes, where)
    found = settle(votes.by_id, tuple(votes.problems))
    if not found.labels and not found.ties:
        why = votes.problems[0] if votes.problems else f"{votes.rows} rows, none with a label"
        raise DataError(f"The file holds no labels: {why}", where=where)
    return found


def settle(votes: Mapping[str, Sequence[bool]], problems: tuple[str, ...] = ()) -> LabelSet:
    """The majority label of each sample."""
    labels = {
        name: 2 * sum(given) > len(given)
        for name, given in votes.items()
        if given and 2 * sum(given) != len(given)
    }
    return LabelSet(
        labels=labels,
        ties=tuple(name for name, given in votes.items() if given and name not in labels),
        several=sum(len(given) > 1 for given in votes.values()),
        blank=tuple(name for name, given in votes.items() if not given),
        problems=problems,
    )


def _row(
    cells: Mapping[str, Any], id_column: str, columns: Sequence[str]
) -> tuple[str, list[bool]]:
    missing = [column for column in (id_column, *columns) if column not in cells]
    if missing:
        raise ValueError(_missing(missing, id_column, cells))
    name = identifier(cells[id_column])
    if name is None:
        raise ValueError("`id` is empty")
    return name, [label for column in columns for label in _given(cells[column])]


def _given(cell: Any) -> Iterator[bool]:
    """The labels of one cell."""
    parts: Sequence[Any] = [cell]
    if isinstance(cell, str):
        parts = cell.split(_PARTED)
    elif isinstance(cell, list):
        parts = cell
    for part in parts:
        label = truth(part)
        if label is not None:
            yield label


def _missing(missing: Sequence[str], id_column: str, cells: Mapping[str, Any]) -> str:
    has = ", ".join(cells)[:200] or "nothing"
    hints = []
    for column in missing:
        name = "id" if column == id_column else "label"
        close = get_close_matches(column, cells, n=1)
        guess = [*close, *(usual for usual in _USUAL[name] if usual in cells)]
        if guess:
            hints.append(f"--map {guess[0]}={name}")
    advice = f" Did you mean `{' '.join(hints)}`?" if hints else ""
    named = ", ".join(f"`{column}`" for column in missing)
    return f"{named} is missing (the row has: {has}).{advice}"


def _refuse_shape(votes: _Votes, where: str) -> None:
    """Say once what is wrong with every row alike; leaving them all out would help nobody.

    Raises:
        DataError: no row can be used, all for one reason.
    """
    if votes.rows > 1 and len(votes.problems) == votes.rows and len(votes.kinds) == 1:
        raise DataError(
            f"None of {votes.rows} rows of labels can be used: {next(iter(votes.kinds))}",
            where=where,
            remedy="Name the columns: --map COLUMN=id --map COLUMN=label",
        )


def _bad_rows(votes: _Votes, where: str) -> DataError:
    shown = "; ".join(problem.rstrip(".") for problem in votes.problems[:SHOWN_PROBLEMS])
    more = len(votes.problems) - SHOWN_PROBLEMS
    tail = f"; and {more} more" if more > 0 else ""
    return DataError(
        f"{len(votes.problems)} of {votes.rows} rows of labels cannot be used: {shown}{tail}.",
        where=where,
        remedy="Mend them, name the columns with --map, or leave the rows out with --skip-bad.",
    )
