"""Text from outside on the screen: shown as it is, and never obeyed as markup, link or escape."""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content

from offline_judge.domain.visible import visible

TAB = "    "
LONGEST = 100_000
"""Characters of a text that are drawn; more is only counted, since nobody scrolls through it."""

DIM, GOOD, BAD, WARN = "$text-muted", "$text-success", "$text-error", "bold"


def plain(text: str, style: str = "") -> Content:
    """Text with its line feeds, all else that a terminal would obey made readable."""
    shown = Content(visible(text.expandtabs(len(TAB)), lines=True))
    return shown.stylize(style) if style else shown


def whole(text: str) -> Content:
    """A text with its lines, as far as it is drawn."""
    shown = plain(text[:LONGEST])
    if len(text) <= LONGEST:
        return shown
    rest = f"\n\n… {len(text) - LONGEST:,} more characters are not drawn; write all to a file."
    return Content.assemble(shown, (rest, DIM))


def piece(text: str, style: str = "") -> Content:
    """A text on one line as it stands, in a style."""
    return Content.styled(visible(text), style)


def pairs(items: Sequence[tuple[str, str]]) -> Content:
    """Names with their values, a line each, one below the other."""
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


def line(text: str) -> str:
    """Text as one line, made readable."""
    return " ".join(visible(text).split())


def named(name: str, text: str | Content, style: str = "") -> Content:
    """A named value: `name  value`, for lists of what there is to know."""
    value = text if isinstance(text, Content) else plain(text, style)
    return Content.assemble((f"{name}  ", DIM), value)


def truth(value: bool | None) -> str:
    """`true`, `false`, or a dash where nothing was said."""
    return "-" if value is None else str(value).lower()


def of_true(value: float | None) -> str:
    """Behind a verdict: its probability, or that there is none."""
    return ", without a probability" if value is None else f" {value:.2f} of true"


def probability(value: float | None) -> str:
    """Two digits, or a dash."""
    return "-" if value is None else f"{value:.2f}"
