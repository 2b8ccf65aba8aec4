"""A text of a sample in full: question, response, rationale and whatever else has one."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.widgets import Static

from offline_judge_tui.text import piece, whole


class TextPane(VerticalScroll):
    """Shows one text under its name."""

    DEFAULT_CSS = """
    TextPane {
        padding: 0 1;
        & > #text-title { color: $text-muted; text-style: bold; }
    }
    """

    shown: str = ""
    """The text in full, as it came."""

    def compose(self) -> ComposeResult:
        """Name and text."""
        yield Static(id="text-title", markup=False)
        yield Static(id="text-body", markup=False)

    def show(self, title: str, text: str) -> None:
        """Show another text."""
        self.shown = text
        self.query_one("#text-title", Static).update(piece(title))
        self.query_one("#text-body", Static).update(whole(text))
        self.scroll_home(animate=False)
