"""Questions asked before a sample is judged again: whether to, and with which passage."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Button, Input, Label, Static, TextArea

from offline_judge_tui.again import Change
from offline_judge_tui.widgets.drawing import WARN, line

_CSS = """
    align: center middle;
    & > VerticalScroll {
        width: 76; max-width: 95%; height: auto; max-height: 95%;
        padding: 1 2; border: round $primary; background: $surface;
    }
    & Horizontal { height: auto; margin: 1 0 0 0; }
    & Button { margin: 0 2 0 0; }
"""


class WithoutScreen(ModalScreen[bool]):
    """Asks whether to judge again without a piece of evidence."""

    DEFAULT_CSS = f"WithoutScreen {{ {_CSS} }}"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "answer(False)", "Back", id="without.back")
    ]

    def __init__(self, name: str, cost: str) -> None:
        super().__init__()
        self._evidence_name = name
        self._cost = cost

    def compose(self) -> ComposeResult:
        """The question and its two answers."""
        with VerticalScroll(can_focus=False):
            yield Static(line(f"Judge again without {self._evidence_name}?", "bold"))
            yield Static(line(self._cost))
            with Horizontal():
                yield Button("Judge again", variant="primary", id="yes", compact=True)
                yield Button("Back", id="no", compact=True)

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """Answer."""
        self.dismiss(event.button.id == "yes")

    def action_answer(self, answer: bool) -> None:
        """Answer by a key."""
        self.dismiss(answer)


class OwnPassageScreen(ModalScreen[Change | None]):
    """Takes a passage of a person's own.

    Args:
        draft: What was written before.
        problem: Why that could not be used.
    """

    DEFAULT_CSS = f"""
    OwnPassageScreen {{ {_CSS}
        & TextArea {{ height: 8; }}
        & Input {{ margin: 0; }}
    }}
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "Back", id="own.back"),
        Binding("ctrl+s", "judge", "Judge again", id="own.judge", priority=True),
    ]

    def __init__(self, draft: Change, problem: str = "") -> None:
        super().__init__()
        self._draft = draft
        self._problem = problem

    def compose(self) -> ComposeResult:
        """The passage, and where it comes from."""
        draft = self._draft
        with VerticalScroll(can_focus=False):
            yield Label("Judge again with a passage of your own (ctrl+s judges)")
            yield Static(line(self._problem, WARN), id="own-problem")
            yield TextArea(draft.text, id="own-text", compact=True, show_line_numbers=False)
            yield Input(draft.title, "Title", id="own-title", compact=True)
            yield Input(draft.url, "Address", id="own-url", compact=True)
            yield Input(draft.date, "Date, such as 2025-03-14", id="own-date", compact=True)
            with Horizontal():
                yield Button("Judge again", variant="primary", id="yes", compact=True)
                yield Button("Back", id="no", compact=True)

    def on_mount(self) -> None:
        """Begin with the passage itself."""
        self.query_one("#own-problem").display = bool(self._problem)
        self.query_one("#own-text").focus()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """Judge or go back."""
        if event.button.id == "yes":
            self.action_judge()
        else:
            self.action_back()

    def action_judge(self) -> None:
        """Hand the passage over; what is wrong with it is told by whoever takes it."""
        title, url, date = (
            self.query_one(f"#own-{name}", Input).value for name in ("title", "url", "date")
        )
        text = self.query_one("#own-text", TextArea).text
        if not text.strip():
            problem = self.query_one("#own-problem", Static)
            problem.display = True
            problem.update(line("The passage is empty.", WARN))
            return
        self.dismiss(Change(text=text, title=title, url=url, date=date))

    def action_back(self) -> None:
        """Leave without judging."""
        self.dismiss(None)
