"""How long ago something was found, as people say it."""

from __future__ import annotations

from datetime import UTC, datetime

from offline_judge.domain.numbers import count

_MINUTE, _HOUR, _DAY = 60, 3600, 86400


def ago(found_at: str, now: datetime | None = None) -> str:
    """`just now`, `5 minutes ago`, `3 days ago`; "" where the time cannot be read."""
    age = _age(found_at, now or datetime.now(UTC))
    return "" if age is None else f"{age} ago" if age else "just now"


def earlier(found_at: str, when: str) -> str:
    """How much earlier than `when` something was found: `3 days earlier`; "" if unknown."""
    moment = _time(when)
    age = None if moment is None else _age(found_at, moment)
    return "" if age is None else f"{age} earlier" if age else "moments earlier"


def day(time: str) -> str:
    """`2026-01-31 10:00` of a time in ISO 8601; a dash where there is none."""
    return time[:16].replace("T", " ") or "-"


def _age(found_at: str, now: datetime) -> str | None:
    """`3 days`; "" for less than a minute; None where it is no time."""
    found = _time(found_at)
    if found is None:
        return None
    seconds = max(0, int((now - found).total_seconds()))
    for unit, name, most in ((_DAY, "day", 10**9), (_HOUR, "hour", 24), (_MINUTE, "minute", 60)):
        if unit <= seconds < most * unit:
            return count(seconds // unit, name)
    return ""


def _time(text: str) -> datetime | None:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return time if time.tzinfo else time.replace(tzinfo=UTC)
