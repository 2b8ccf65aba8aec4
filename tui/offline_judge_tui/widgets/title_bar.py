"""The first line of every screen: where one is, and where else one can go."""

from __future__ import annotations

from textual.content import Content
from textual.widgets import Static

from offline_judge_tui.text import line

PROGRAM = "offline_judge"


class TitleBar(Static):
    """Breadcrumbs; every text is shown as it is.

    Args:
        *crumbs: From the outermost to this screen.
    """

    def __init__(self, *crumbs: str) -> None:
        super().__init__(self._content(crumbs), markup=False)

    def show(self, *crumbs: str) -> None:
        """Say anew where one is."""
        self.update(self._content(crumbs))

    @staticmethod
    def _content(crumbs: tuple[str, ...]) -> Content:
        parts: list[Content | str | tuple[str, str]] = [(PROGRAM, "bold $primary")]
        for crumb in crumbs:
            parts += [("  /  ", "$text-muted"), Content(line(crumb))]
        return Content.assemble(*parts)
