"""What becomes of runs that go on when the user leaves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widgets import Button, Static

from offline_judge_tui.keys import binding
from offline_judge_tui.text import plain

_SHOWN = 4


class Leaving(ModalScreen[bool | None]):
    """Asks; answers whether the runs shall be cancelled, or None to stay.

    Args:
        live: Ids of the runs that go on.
    """

    BINDINGS: ClassVar[list[BindingType]] = [binding("app.back", "stay")]

    def __init__(self, live: Sequence[str]) -> None:
        super().__init__()
        self._live = live

    def compose(self) -> ComposeResult:
        """The question and three answers."""
        named = "\n".join(self._live[:_SHOWN])
        more = len(self._live) - _SHOWN
        rest = f"\nand {more} more" if more > 0 else ""
        told = "These runs go on by themselves, and are found again when you come back:"
        with Vertical(classes="dialog"):
            yield Static(plain(f"{told}\n\n{named}{rest}"), markup=False)
            with Horizontal(classes="buttons"):
                yield Button("Leave them going", id="leave", variant="primary")
                yield Button("Cancel them", id="cancel", variant="error")
                yield Button("Stay", id="stay")

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """Answer."""
        answers = {"leave": False, "cancel": True}
        self.dismiss(answers.get(str(event.button.id)))

    def action_stay(self) -> None:
        """Go on."""
        self.dismiss(None)
