"""A line in which one types what the rows of a screen must have in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from textual.widgets import Footer

from offline_judge_tui.bridge import Desk
from offline_judge_tui.widgets.row_table import RowTable

if TYPE_CHECKING:
    from textual.widgets import Input


class Filtering(Desk):
    """A screen with a table and, when asked for, a line to filter it by."""

    FILTER: ClassVar[str] = ""
    """What may be typed, as the empty line says it."""

    @property
    def table(self) -> RowTable:
        """The table that is filtered."""
        raise NotImplementedError

    def filtered(self, text: str) -> None:
        """Show the rows that have this text in them."""
        raise NotImplementedError

    def action_filter(self) -> None:
        """Ask for a text."""
        self.call_later(self._ask)

    async def leave_filter(self) -> bool:
        """Take the line away and show all rows again; false where there is no line."""
        fields: Any = self.query("Input.filter")
        if not fields:
            return False
        await fields.remove()
        self.filtered("")
        self.table.focus()
        return True

    def on_input_changed(self, event: Input.Changed) -> None:
        """Show what fits."""
        self.filtered(event.value)

    def on_input_submitted(self, _event: Input.Submitted) -> None:
        """Keep what is filtered, and go back to the table."""
        self.table.focus()

    async def _ask(self) -> None:
        # Imported when it is needed: the first screen is painted without it.
        from textual.widgets import Input

        if not self.query("Input.filter"):
            field = Input(placeholder=self.FILTER, classes="filter")
            await self.mount(field, before=self.query_one(Footer))
        self.query_one("Input.filter").focus()
