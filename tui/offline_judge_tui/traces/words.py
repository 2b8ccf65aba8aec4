"""Long texts of a trace cut to a line, and masses as people read them."""

from __future__ import annotations

from collections.abc import Mapping

LINE = 160
"""Characters of a text that a label shows at most."""


def one_line(text: str, width: int = LINE) -> str:
    """The beginning of a text on one line, with an ellipsis where it was cut."""
    # Cut first: a text may have megabytes, and only its beginning is wanted.
    head = text[: 4 * width]
    line = " ".join(head.split())
    if len(line) <= width and len(head) == len(text):
        return line
    return f"{line[: width - 1].rstrip()}…"


def masses(found: Mapping[str, float]) -> str:
    """`true 0.83, false 0.15`."""
    return ", ".join(f"{name} {mass:.2f}" for name, mass in found.items())
