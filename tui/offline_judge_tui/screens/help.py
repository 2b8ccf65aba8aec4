"""Help: every key, where it works, and what it does."""

from __future__ import annotations

from collections.abc import Iterator

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Footer, Static

from offline_judge_tui.bridge import Desk
from offline_judge_tui.keys import KEYS, PLACES
from offline_judge_tui.widgets.title_bar import TitleBar

_ABOUT = """\
A run is a process of its own: what you start here goes on when you leave, and is found again when
you come back. Everything here has a command too: `offline-judge --help`.

The mouse works: a click moves the cursor, a click on the cursor opens. ctrl+p lists all commands.
Keys are set anew by their names in the section [keys] of the settings, as "home.resume" = "R".
"""


class HelpScreen(Desk):
    """The keys as they are set now."""

    def compose(self) -> ComposeResult:
        """A list by places."""
        yield TitleBar("Help")
        with VerticalScroll(classes="pane"):
            yield Static(_ABOUT, markup=False)
            for place, title in PLACES.items():
                yield Static(Content.assemble((f"\n{title}", "bold $primary")), markup=False)
                yield Static(Content("\n").join(self._keys(place)), markup=False)
        yield Footer()

    def _keys(self, place: str) -> Iterator[Content]:
        for name, key in KEYS.items():
            if name.partition(".")[0] == place:
                pressed = self.home.keys_of(name)
                shown = " or ".join(self.app.get_key_display(Binding(one, "")) for one in pressed)
                yield Content.assemble(
                    (f"{shown:<24}", "$accent"), f"{key.does:<30}", (name, "$text-muted")
                )
