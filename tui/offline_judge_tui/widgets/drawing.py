"""Pieces of a trace as text that a terminal draws and never obeys."""

from __future__ import annotations

from textual.content import Content

from offline_judge.domain.visible import visible

LONGEST = 100_000
"""Characters of a text that are drawn; more is only counted, since nobody scrolls through it."""

ACCENT, DIM, GOOD, BAD, WARN = "$accent", "$text-muted", "$text-success", "$text-error", "bold"


def whole(text: str) -> Content:
    """A text with its lines, as far as it is drawn."""
    shown = visible(text[:LONGEST], lines=True)
    if len(text) <= LONGEST:
        return Content(shown)
    rest = f"\n\n… {len(text) - LONGEST:,} more characters are not drawn; write all to a file."
    return Content.assemble(shown, (rest, DIM))


def line(text: str, style: str = "") -> Content:
    """A text on one line."""
    return Content.styled(visible(text), style)


def pairs(items: list[tuple[str, str]]) -> Content:
    """Names with their values, a line each."""
    width = max((len(name) for name, _ in items), default=0)
    lines = [
        Content.assemble((f"{name:<{width}}  ", DIM), visible(value.strip()))
        for name, value in items
    ]
    return Content("\n").join(lines)


def bar(share: float, width: int = 10) -> str:
    """A share of one as a bar of so many cells."""
    full = round(max(0.0, min(1.0, share)) * width)
    return "█" * full + "░" * (width - full)
