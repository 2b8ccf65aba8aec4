"""Text from outside on the screen: shown as it is, and never obeyed as markup, link or escape."""

from __future__ import annotations

from textual.content import Content

from offline_judge.domain.visible import visible

TAB = "    "


def plain(text: str, style: str = "") -> Content:
    """Text with its line feeds, all else that a terminal would obey made readable."""
    shown = Content(visible(text.expandtabs(len(TAB)), lines=True))
    return shown.stylize(style) if style else shown


def line(text: str) -> str:
    """Text as one line, made readable."""
    return " ".join(visible(text).split())


def named(name: str, text: str | Content, style: str = "") -> Content:
    """A named value: `name  value`, for lists of what there is to know."""
    value = text if isinstance(text, Content) else plain(text, style)
    return Content.assemble((f"{name}  ", "$text-muted"), value)


def truth(value: bool | None) -> str:
    """`true`, `false`, or a dash where nothing was said."""
    return "-" if value is None else str(value).lower()


def probability(value: float | None) -> str:
    """Two digits, or a dash."""
    return "-" if value is None else f"{value:.2f}"
