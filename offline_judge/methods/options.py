"""How a method reads its options: typed, ranged, told with their meaning, refused by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, TypeVar, get_args

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from offline_judge.domain.base import Frozen
from offline_judge.errors import UsageError

RATIONALE = "Whether the judge says why."
"""What the option `rationale` of every method is for."""


@dataclass(frozen=True)
class OptionHelp:
    """One option of a method, for people.

    Attributes:
        name: As `-o NAME=VALUE` takes it.
        kind: `yes or no`, `whole number`, `number`, `text`, or the choices.
        default: What it is unless given.
        meaning: What it is for, and what it may be.
    """

    name: str
    kind: str
    default: Any
    meaning: str


def describe_options(model: type[Frozen]) -> tuple[OptionHelp, ...]:
    """All options of a method's model, in the order they are declared."""
    return tuple(
        OptionHelp(name, _kind(field.annotation), field.default, _meaning(field))
        for name, field in model.model_fields.items()
    )


def _kind(annotation: Any) -> str:
    choices = get_args(annotation)
    return " | ".join(map(str, choices)) if choices else _KINDS.get(annotation, "text")


def _meaning(field: FieldInfo) -> str:
    bounds = [f"{sign} {value:g}" for sign, value in _bounds(field)]
    return (field.description or "") + (f" ({', '.join(bounds)})" if bounds else "")


def _bounds(field: FieldInfo) -> Iterator[tuple[str, float]]:
    for rule in field.metadata:
        for name, sign in _SIGNS.items():
            if (value := getattr(rule, name, None)) is not None:
                yield sign, value


_KINDS = {bool: "yes or no", int: "whole number", float: "number"}
_SIGNS = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}

O = TypeVar("O", bound=Frozen)  # noqa: E741 - the type of a method's options


def read_options(model: type[O], method: str, raw: Mapping[str, Any]) -> O:
    """Fill `model` from `raw`, whose values may be text from a command line.

    Raises:
        UsageError: an unknown option, or a value out of range, with the option's name.
    """
    for name in raw:
        if name not in model.model_fields:
            close = get_close_matches(name, model.model_fields, n=1)
            known = ", ".join(model.model_fields)
            remedy = f"Did you mean `{close[0]}`?" if close else f"It has: {known}."
            raise UsageError(f"Method `{method}` has no option `{name}`.", remedy=remedy)
    try:
        return model.model_validate(dict(raw))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = ".".join(str(part) for part in first["loc"])
        raise UsageError(
            f"Option `{name}` of method `{method}`: {first['msg']} (given: {first['input']!r})."
        ) from error
