"""What a newcomer sees instead of an empty list: three steps to a first judged file."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, cast

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Button, Static

if TYPE_CHECKING:
    from offline_judge_tui.app import OfflineJudgeApp

_STEPS = (
    (
        "1  Choose what is judged",
        "A file of questions and responses, JSON Lines or CSV. Twelve samples lie ready: they are "
        "chosen below, and nothing leaves this machine.",
    ),
    (
        "2  Choose who judges",
        "The form shows the models, whether they fit this machine's memory, and fetches one on the "
        "spot, checked by its hash.",
    ),
    (
        "3  Watch, then read why",
        "The run goes on by itself, whether you stay or not. Open a sample to see what was "
        "searched, what was found, and what tipped the verdict.",
    ),
)


class Welcome(VerticalScroll):
    """Three steps and two ways to begin."""

    DEFAULT_CSS: ClassVar[str] = """
    Welcome { height: 1fr; padding: 1 2; }
    Welcome > .title { text-style: bold; color: $primary; margin-bottom: 1; }
    Welcome > .step { margin-bottom: 1; }
    Welcome > Button { margin-bottom: 1; }
    """

    def compose(self) -> ComposeResult:
        """The steps and the buttons."""
        yield Static("No runs yet. Three steps to your first judged file:", classes="title")
        for title, told in _STEPS:
            content = Content.assemble((f"{title}\n", "bold"), (f"   {told}", "$text-muted"))
            yield Static(content, classes="step", markup=False)
        yield Button("Begin with the twelve samples", id="demo", variant="primary")
        yield Button("Begin with a file of mine", id="own")

    def on_mount(self) -> None:
        """Enter begins."""
        self.query_one("#demo").focus()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """Open the form, with the samples in it or without."""
        event.stop()
        app = cast("OfflineJudgeApp", self.app)
        if event.button.id == "own":
            app.open("new_run")
            return
        from offline_judge import api

        app.open("new_run", data=str(api.demo_samples()))
