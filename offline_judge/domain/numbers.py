"""Numbers, times and sizes as people read them."""

from __future__ import annotations


def duration(seconds: float) -> str:
    """`8.2 s`, `3 min 20 s`, `2 h 05 min`."""
    if seconds < 59.5:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min"


def size(count: float) -> str:
    """`640 B`, `98.4 MB`, `1.12 GB`, decimal units."""
    for unit, digits in (("B", 0), ("kB", 0), ("MB", 1), ("GB", 2)):
        if count < 1000 or unit == "GB":
            return f"{count:.{digits}f} {unit}"
        count /= 1000
    raise AssertionError("unreachable")


def count(number: int, thing: str, several: str = "") -> str:
    """`1 sample`, `12 samples`, with thousands separated."""
    return f"{number:,} {thing if number == 1 else several or f'{thing}s'}"


def percent(part: int, whole: int) -> str:
    """`64 %`; a dash where there is no whole."""
    return f"{100 * part / whole:.0f} %" if whole else "-"


def share(probability: float | None) -> str:
    """A probability with two digits, or a dash where the engine gives none."""
    return "-" if probability is None else f"{probability:.2f}"
