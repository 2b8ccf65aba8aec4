"""Owns the names of runs: ids that sort by time, and finding the one that is meant."""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from datetime import UTC, datetime
from difflib import get_close_matches

from offline_judge.errors import RunNotFoundError

NEWEST = "last"

# Digits before letters, as they sort; without letters that look like digits.
_DIGITS = "0123456789abcdefghjkmnpqrstvwxyz"
_VALID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}\Z")
_SHOWN = 5


def new_run_id(now: datetime | None = None) -> str:
    """A new id such as `20261130-211507-k3fz`: the second in UTC, then its fraction and a draw.

    Ids sort by time to about a millisecond; of two from one millisecond 1 in 1,024 pairs is equal.
    """
    now = datetime.now(UTC) if now is None else now.astimezone(UTC)
    number = (now.microsecond * 1024 // 1_000_000) << 10 | secrets.randbelow(1024)
    letters = (_DIGITS[number >> shift & 31] for shift in (15, 10, 5, 0))
    return f"{now:%Y%m%d-%H%M%S}-{''.join(letters)}"


def is_run_id(text: str) -> bool:
    """Whether a run may be called so: one plain file name, not hidden."""
    return _VALID.match(text) is not None and text != NEWEST


def find_run_id(wanted: str, ids: Sequence[str]) -> str:
    """The id that is meant: itself, a prefix that only one id has, or `last`.

    Args:
        wanted: What the user typed.
        ids: All ids, oldest first.

    Raises:
        RunNotFoundError: none or several fit; says which come close.
    """
    if wanted in ids:
        return wanted
    if not ids:
        raise RunNotFoundError(
            f"No run `{wanted}`: there are no runs yet.", remedy="Start one: offline-judge run"
        )
    if wanted == NEWEST:
        return ids[-1]
    fitting = [name for name in ids if wanted and name.startswith(wanted)]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        shown = ", ".join(fitting[-_SHOWN:])
        more = f" and {len(fitting) - _SHOWN} more" if len(fitting) > _SHOWN else ""
        raise RunNotFoundError(f"Several runs begin with `{wanted}`: {shown}{more}.")
    close = get_close_matches(wanted, ids, n=1)
    hint = f"Did you mean `{close[0]}`?" if close else "See: offline-judge runs list"
    raise RunNotFoundError(f"No run `{wanted}`.", remedy=hint)
