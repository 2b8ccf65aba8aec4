"""How a method reads its options: typed, ranged, and refused by name."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, TypeVar

from pydantic import ValidationError

from offline_judge.domain.base import Frozen
from offline_judge.errors import UsageError

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
