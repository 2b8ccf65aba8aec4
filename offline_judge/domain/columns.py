"""What the cells of a file say: ids, and the ways people write true and false."""

from __future__ import annotations

from typing import Any

from offline_judge.domain.base import canonical_json
from offline_judge.domain.strict_json import json_kind

_TRUE = {"true", "1", "1.0", "yes", "correct"}
_FALSE = {"false", "0", "0.0", "no", "incorrect"}


def identifier(value: Any) -> str | None:
    """An id as text, None where there is none.

    Raises:
        ValueError: neither text nor a whole number.
    """
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise ValueError(f"`id` must be text or a whole number, not {json_kind(value)}")
    return str(value).strip() or None


def truth(value: Any) -> bool | None:
    """A label; true, 1, yes and correct mean the same, in any case of letters.

    Raises:
        ValueError: another value.
    """
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    word = str(value).strip().lower() if isinstance(value, str | bool | int | float) else ""
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    shown = canonical_json(value)[:40]
    raise ValueError(f"`label` is {shown}, not true/false, 1/0, yes/no or correct/incorrect")
