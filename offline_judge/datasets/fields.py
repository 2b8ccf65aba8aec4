"""From the columns of a row to the fields of a sample."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from offline_judge.domain.base import canonical_json
from offline_judge.domain.columns import identifier, truth
from offline_judge.domain.sample import Metadata
from offline_judge.domain.strict_json import json_kind
from offline_judge.errors import UsageError

FIELDS = ("id", "question", "response", "reference", "label")
REQUIRED = ("question", "response")

# Names that other programs give to the columns that must be there.
_USUAL = {
    "question": ("prompt", "query", "input", "instruction", "problem"),
    "response": ("answer", "output", "completion", "prediction", "candidate", "generation"),
}


def column_names(mapping: Mapping[str, str]) -> dict[str, str]:
    """Field to column for all fields; a field that is not mapped is its own column.

    Raises:
        UsageError: the mapping names a field that there is not, or one column twice.
    """
    for field in mapping:
        if field not in FIELDS:
            close = get_close_matches(field, FIELDS, n=1)
            hint = f"Did you mean `{close[0]}`?" if close else f"Fields: {', '.join(FIELDS)}."
            raise UsageError(f"There is no field `{field}` to map a column to", remedy=hint)
    columns = list(mapping.values())
    twice = next((name for name in columns if columns.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"The column `{twice}` is mapped to two fields")
    taken = set(columns)
    return {
        field: mapping.get(field, field)
        for field in FIELDS
        if field in mapping or field not in taken
    }


def missing_columns(
    columns: Mapping[str, str], mapping: Mapping[str, str], required: Collection[str] = REQUIRED
) -> dict[str, str]:
    """Field to column of those that a file must have: the required and the mapped ones."""
    wanted = {*required, *mapping}
    return {field: columns.get(field, field) for field in FIELDS if field in wanted}


def map_hint(fields: Iterable[str], present: Collection[str]) -> str:
    """Advice on `--map` for fields whose column is missing, empty where none comes to mind."""
    hints = []
    lower = {name.lower(): name for name in present}
    for field in fields:
        usual = [lower[name] for name in _USUAL.get(field, ()) if name in lower]
        close = get_close_matches(field, lower, n=1)
        guess = [lower[name] for name in close] + usual
        if guess:
            hints.append(f"--map {guess[0]}={field}")
    return f"Did you mean `{' '.join(hints)}`?" if hints else ""


def needed(columns: Mapping[str, Any], name: str) -> Any:
    """The value of a column that a row must have, null included.

    Raises:
        ValueError: the row has no such column.
    """
    if name not in columns:
        raise ValueError(f"`{name}` is missing")
    return columns[name]


def text_of(value: Any, field: str) -> str:
    """A question or a response; numbers are taken as they are written.

    Raises:
        ValueError: something else, or nothing but blanks.
    """
    if value is None:
        raise ValueError(f"`{field}` is missing")
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str):
        raise ValueError(f"`{field}` must be text, not {json_kind(value)}")
    if not value.strip():
        raise ValueError(f"`{field}` is empty")
    return value


def id_of(value: Any) -> str | None:
    """The row's own id as text, None where it brings none.

    Raises:
        ValueError: neither text nor a whole number.
    """
    return identifier(value)


def label_of(value: Any) -> bool | None:
    """What people said; true, 1, yes and correct mean the same, in any case of letters.

    Raises:
        ValueError: another value.
    """
    return truth(value)


def reference_of(value: Any, *, split: bool) -> tuple[str, ...]:
    """Accepted answers: a text, or a list of texts; with `split`, a text parted by `|`.

    Raises:
        ValueError: another value.
    """
    if value is None:
        return ()
    if isinstance(value, str):
        value = value.split("|") if split else [value]
    elif not isinstance(value, list):
        value = [value]
    answers = []
    for answer in value:
        if isinstance(answer, bool) or not isinstance(answer, str | int | float):
            raise ValueError(
                f"`reference` must be text or a list of texts, not {json_kind(answer)}"
            )
        answers.append(str(answer).strip())
    return tuple(answer for answer in answers if answer)


def metadata_of(columns: Mapping[str, Any], used: Collection[str]) -> Metadata:
    """All other columns; what is nested is kept as JSON text."""
    return {
        name: value
        if value is None or isinstance(value, str | int | float)
        else canonical_json(value)
        for name, value in columns.items()
        if name not in used
    }
