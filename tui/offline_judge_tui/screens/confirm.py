"""A question with two answers, the harmless one first."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widgets import Button, Static

from offline_judge_tui.keys import binding
from offline_judge_tui.text import plain


class Confirm(ModalScreen[bool]):
    """Asks before something is lost.

    Args:
        question: What is asked.
        yes: What the button says that does it.
    """

    BINDINGS: ClassVar[list[BindingType]] = [binding("app.back", "no")]

    def __init__(self, question: str, yes: str) -> None:
        super().__init__()
        self._question = question
        self._yes = yes

    def compose(self) -> ComposeResult:
        """The question and two buttons."""
        with Vertical(classes="dialog"):
            yield Static(plain(self._question), markup=False)
            with Horizontal(classes="buttons"):
                yield Button("Keep", id="no")
                yield Button(self._yes, id="yes", variant="error")

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """Answer."""
        self.dismiss(event.button.id == "yes")

    def action_no(self) -> None:
        """Leave everything as it is."""
        self.dismiss(False)
