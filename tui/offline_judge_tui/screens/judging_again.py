"""Questions asked before a sample is judged again: whether to, and with which passage."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widgets import Button, Input, Label, Static, TextArea

from offline_judge_tui.again import Change
from offline_judge_tui.keys import binding
from offline_judge_tui.text import WARN, piece, whole


class WithoutScreen(ModalScreen[bool]):
    """Asks whether to judge again without a piece of evidence.

    Args:
        evidence: What it is called.
        cost: What to expect of it.
    """

    BINDINGS: ClassVar[list[BindingType]] = [binding("app.back", "no")]

    def __init__(self, evidence: str, cost: str) -> None:
        super().__init__()
        self._evidence = evidence
        self._cost = cost

    def compose(self) -> ComposeResult:
        """The question and its two answers."""
        with Vertical(classes="dialog"):
            yield Static(piece(f"Judge again without {self._evidence}?", "bold"), markup=False)
            yield Static(piece(self._cost), markup=False)
            with Horizontal(classes="buttons"):
                yield Button("Judge again", variant="primary", id="yes")
                yield Button("Not now", id="no")

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """Answer."""
        self.dismiss(event.button.id == "yes")

    def action_no(self) -> None:
        """Judge nothing."""
        self.dismiss(False)


class OwnPassageScreen(ModalScreen[Change | None]):
    """Takes a passage of a person's own.

    Args:
        draft: What was written before.
        problem: Why that could not be used.
    """

    DEFAULT_CSS = """
    OwnPassageScreen TextArea { height: 6; }
    OwnPassageScreen #own-problem { max-height: 3; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        binding("app.back", "close"),
        binding("sample.judge", "judge"),
    ]

    def __init__(self, draft: Change, problem: str = "") -> None:
        super().__init__()
        self._draft = draft
        self._problem = problem

    def compose(self) -> ComposeResult:
        """The passage, and where it comes from."""
        draft = self._draft
        with Vertical(classes="dialog"):
            yield Label("Judge again with a passage of your own", markup=False)
            yield Static(whole(self._problem).stylize(WARN), id="own-problem", markup=False)
            yield TextArea(draft.text, id="own-text", compact=True, placeholder="The passage")
            yield Input(draft.title, "Title", id="own-title", compact=True)
            yield Input(draft.url, "Address", id="own-url", compact=True)
            yield Input(draft.date, "Date, such as 2025-03-14", id="own-date", compact=True)
            with Horizontal(classes="buttons"):
                yield Button("Judge again", variant="primary", id="yes")
                yield Button("Not now", id="no")

    def on_mount(self) -> None:
        """Begin with the passage itself."""
        self.query_one("#own-problem").display = bool(self._problem)
        self.query_one("#own-text").focus()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """Judge, or do not."""
        if event.button.id == "yes":
            self.action_judge()
        else:
            self.action_close()

    def action_judge(self) -> None:
        """Hand the passage over; whoever takes it tells what else is wrong with it."""
        text = self.query_one("#own-text", TextArea).text
        if not text.strip():
            problem = self.query_one("#own-problem", Static)
            problem.display = True
            problem.update(piece("The passage is empty.", WARN))
            return
        title, url, date = (
            self.query_one(f"#own-{name}", Input).value for name in ("title", "url", "date")
        )
        self.dismiss(Change(text=text, title=title, url=url, date=date))

    def action_close(self) -> None:
        """Judge nothing."""
        self.dismiss(None)
