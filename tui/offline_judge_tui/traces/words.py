"""Figures and times of a trace as people say them, and long texts cut to a line."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

LINE = 160
"""Characters of a text that a label shows at most."""

_UNITS = ((86400, "day"), (3600, "hour"), (60, "minute"))


def one_line(text: str, width: int = LINE) -> str:
    """The beginning of a text on one line, with an ellipsis where it was cut."""
    # Cut first: a text may have megabytes, and only its beginning is wanted.
    head = text[: 4 * width]
    line = " ".join(head.split())
    if len(line) <= width and len(head) == len(text):
        return line
    return f"{line[: width - 1].rstrip()}…"


def earlier(found_at: str, when: str) -> str:
    """How much earlier than `when` something was found: `3 days earlier`; "" if unknown."""
    found, moment = _time(found_at), _time(when)
    if found is None or moment is None:
        return ""
    seconds = max(0, int((moment - found).total_seconds()))
    for unit, name in _UNITS:
        if seconds >= unit:
            number = seconds // unit
            return f"{number:,} {name}{'s' if number != 1 else ''} earlier"
    return "moments earlier"


def clock(time: str) -> str:
    """`2026-01-31 10:00` of a time in ISO 8601; a dash where there is none."""
    return time[:16].replace("T", " ") or "-"


def masses(found: Mapping[str, float]) -> str:
    """`true 0.83, false 0.15`."""
    return ", ".join(f"{name} {mass:.2f}" for name, mass in found.items())


def truth(label: bool | None) -> str:
    """`true`, `false`, or a dash where nothing was said."""
    return "-" if label is None else "true" if label else "false"


def count(number: int, thing: str) -> str:
    """`1 hit`, `2,000 hits`."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def _time(text: str) -> datetime | None:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return time if time.tzinfo else time.replace(tzinfo=UTC)
