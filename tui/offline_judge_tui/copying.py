"""Copying out of the UI: to the terminal, which never says whether it took it, or into a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widgets import Button, Input, Label

from offline_judge.errors import OfflineJudgeError
from offline_judge_tui.keys import binding
from offline_judge_tui.text import line

if TYPE_CHECKING:
    from textual.app import App


class Copies:
    """What was copied last, so that it can be written to a file too.

    Args:
        app: Whose terminal it is.
    """

    def __init__(self, app: App[Any]) -> None:
        self._app = app
        self._last: tuple[str, str] | None = None

    def copy(self, text: str, name: str) -> None:
        """Send text to the terminal's clipboard.

        Args:
            text: What to copy.
            name: What it is, in a word or two; the file is called after it.
        """
        self._last = text, name
        self._app.copy_to_clipboard(text)
        self._app.notify(
            f"{line(name)}: sent to the terminal, which does not say whether it took it.\n"
            "Y writes it to a file.",
            markup=False,
        )

    def write(self) -> None:
        """Ask for a file, and write what was copied last to it."""
        if self._last is None:
            self._app.notify("Nothing has been copied yet.", markup=False)
        else:
            self._app.push_screen(CopyToFile(*self._last))


class CopyToFile(ModalScreen[None]):
    """Asks for a file and writes a text to it.

    Args:
        text: What to write.
        name: What it is.
    """

    BINDINGS: ClassVar[list[BindingType]] = [binding("app.back", "close")]

    def __init__(self, text: str, name: str) -> None:
        super().__init__()
        self._text = text
        self._what = name

    def compose(self) -> ComposeResult:
        """A path and two buttons."""
        stem = "-".join(self._what.lower().split())
        with Vertical(classes="dialog"):
            yield Label(f"Write {line(self._what)} to a file", markup=False)
            yield Input(str(Path.cwd() / f"{stem}.txt"), id="path")
            with Horizontal(classes="buttons"):
                yield Button("Write", id="write", variant="primary")
                yield Button("Not now", id="close")

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """Write, or do not."""
        if event.button.id == "write":
            self._write()
        else:
            self.action_close()

    def on_input_submitted(self) -> None:
        """Enter writes."""
        self._write()

    def action_close(self) -> None:
        """Write nothing."""
        self.dismiss(None)

    def _write(self) -> None:
        from offline_judge.outfiles import write_output

        path = Path(self.query_one("#path", Input).value).expanduser()
        if path.exists():
            told = f"{line(str(path))} exists already; name another file."
            self.notify(told, severity="warning", markup=False)
            return
        try:
            write_output(path, [self._text])
        except (OfflineJudgeError, OSError) as error:
            self.notify(line(str(error)), severity="error", markup=False)
            return
        self.app.notify(f"Written to {line(str(path))}", markup=False)
        self.dismiss(None)
