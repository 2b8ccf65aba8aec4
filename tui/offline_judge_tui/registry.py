"""Which screens there are: the navigation is made of this list; a screen is one entry more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any


@dataclass(frozen=True)
class ScreenEntry:
    """A screen that is not imported yet.

    Attributes:
        name: By which it is opened.
        title: As people see it.
        target: `module:class`; the class takes the arguments of `OfflineJudgeApp.open`.
        navigated: It stands in the navigation, because it needs no arguments.
        help: What it is for, for the command palette.
    """

    name: str
    title: str
    target: str
    navigated: bool
    help: str

    def make(self, **arguments: Any) -> Any:
        """Import the screen and make one."""
        module, _, attribute = self.target.partition(":")
        made: Callable[..., Any] = getattr(import_module(module), attribute)
        return made(**arguments)


_SCREENS = "offline_judge_tui.screens"
SCREENS = {
    entry.name: entry
    for entry in (
        ScreenEntry("home", "Runs", f"{_SCREENS}.home:HomeScreen", True, "All runs"),
        ScreenEntry(
            "new_run", "New run", f"{_SCREENS}.new_run:NewRunScreen", True, "Judge a data file"
        ),
        ScreenEntry("run", "Run", f"{_SCREENS}.run:RunScreen", False, "One run, live or ended"),
        ScreenEntry(
            "sample", "Sample", f"{_SCREENS}.sample:SampleScreen", False, "How one was judged"
        ),
        ScreenEntry("help", "Help", f"{_SCREENS}.help:HelpScreen", True, "Every key"),
    )
}
