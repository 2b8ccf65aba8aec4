"""The application: its screens, its keys and its themes. What judges is another process."""

from __future__ import annotations

import asyncio
import select
import signal
import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar

from textual.app import App, SystemCommand
from textual.binding import BindingType
from textual.screen import Screen

from offline_judge_tui import keys
from offline_judge_tui.registry import SCREENS
from offline_judge_tui.theme import CSS, DARK, LIGHT

if TYPE_CHECKING:
    from offline_judge.settings import Settings
    from offline_judge_tui.copying import Copies


_LOOK_S = 2.0
"""Seconds between two looks whether the terminal is still there."""


class OfflineJudgeApp(App[None]):
    """The terminal UI.

    Args:
        settings: Of this call of the program.
        run: A run to open at once, by its id, a prefix that only it has, or `last`.
        wanted_keys: Keys that the user has set anew, by their names.
    """

    TITLE = "offline_judge"
    CSS = CSS
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (110, "-wide")]  # noqa: RUF012 - as declared there
    BINDINGS: ClassVar[list[BindingType]] = [
        keys.binding("app.help"),
        keys.binding("app.back"),
        keys.binding("app.home"),
        keys.binding("app.new_run"),
        keys.binding("app.theme"),
        keys.binding("app.copy_file"),
        keys.binding("app.quit"),
    ]

    def __init__(
        self, settings: Settings, run: str = "", wanted_keys: Mapping[str, str] | None = None
    ) -> None:
        super().__init__()
        for theme in (DARK, LIGHT):
            self.register_theme(theme)
        self.theme = DARK.name
        self.settings = settings
        self._run = run
        self._wanted_keys = dict(wanted_keys or {})
        self._keys = keys.usable(self._wanted_keys)
        self._copies: Copies | None = None
        self._begun: list[str] = []

    @property
    def copies(self) -> Copies:
        """What was copied last."""
        if self._copies is None:
            from offline_judge_tui.copying import Copies

            self._copies = Copies(self)
        return self._copies

    def on_mount(self) -> None:
        """Take up the user's keys, and open the run that was named."""
        self.set_keymap(self._keys)
        for problem in keys.problems(self._wanted_keys):
            self.notify(problem, title="Section [keys]", severity="warning", markup=False)
        self._hear_signals()
        if self._run:
            self.open("run", run_id=self._run)

    def get_default_screen(self) -> Screen[Any]:
        """The first screen is the list of runs: one less is made before the first paint."""
        screen: Screen[Any] = SCREENS["home"].make()
        return screen

    def begun(self, run_id: str) -> None:
        """Remember a run that was begun from here, so that leaving asks what becomes of it."""
        self._begun.append(run_id)

    async def action_quit(self) -> None:
        """Leave; where runs go on that were begun from here, ask what becomes of them."""
        live = self._live_runs()
        if not live:
            self.exit()
            return
        from offline_judge_tui.screens.leaving import Leaving

        self.push_screen(Leaving(live), lambda cancels: self._leave(live, cancels=cancels))

    def _live_runs(self) -> list[str]:
        if not self._begun:
            return []
        from offline_judge import api
        from offline_judge.errors import OfflineJudgeError

        live = []
        for run_id in dict.fromkeys(self._begun):
            # One that was deleted does not go on.
            with suppress(OfflineJudgeError):
                if api.run_holder(run_id, self.settings):
                    live.append(run_id)
        return live

    def _leave(self, live: list[str], *, cancels: bool | None) -> None:
        """Exit, and cancel what goes on where that is wished; None stays."""
        if cancels is None:
            return
        from offline_judge import api
        from offline_judge.errors import OfflineJudgeError

        for run_id in live if cancels else ():
            # What has ended meanwhile needs no cancelling.
            with suppress(OfflineJudgeError):
                api.cancel(run_id, self.settings)
        self.exit()

    def _hear_signals(self) -> None:
        """Leave in good order, the terminal as it was, when told to end from outside."""
        if threading.current_thread() is not threading.main_thread():
            return
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self.exit, None, 128 + number)
        if not self.is_headless:
            self.set_interval(_LOOK_S, self._see_the_terminal)

    def _see_the_terminal(self) -> None:
        """Leave where the terminal has gone without a signal: there is nobody to paint for."""
        poll = select.poll()
        poll.register(0, 0)
        if any(state & (select.POLLHUP | select.POLLERR) for _, state in poll.poll(0)):
            self.exit(return_code=128 + signal.SIGHUP)

    def on_unmount(self) -> None:
        """Signals are somebody else's again."""
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGHUP):
                asyncio.get_running_loop().remove_signal_handler(number)

    def keys_of(self, name: str) -> list[str]:
        """The keys that are set now for a name of the table of keys."""
        return self._keys.get(name, keys.KEYS[name].keys).split(",")

    def open(self, name: str, **arguments: Any) -> None:
        """Open a screen of the registry.

        Args:
            name: Its name there.
            **arguments: What its class takes.
        """
        self.push_screen(SCREENS[name].make(**arguments))

    async def action_back(self) -> None:
        """Leave this screen; the first one stays."""
        if len(self.screen_stack) > 1:
            await self.pop_screen()

    def action_home(self) -> None:
        """Leave all screens but the first."""
        while len(self.screen_stack) > 1:
            self.pop_screen()

    def action_new_run(self) -> None:
        """Open the form for a new run."""
        self.open("new_run")

    def action_help(self) -> None:
        """Show every key."""
        self.open("help")

    def action_theme(self) -> None:
        """Change between dark and light."""
        self.theme = LIGHT.name if self.theme == DARK.name else DARK.name

    def action_copy_file(self) -> None:
        """Write what was copied last to a file."""
        self.copies.write()

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """What the command palette offers: the screens, and what Textual offers."""
        for entry in SCREENS.values():
            if entry.navigated:
                yield SystemCommand(entry.title, entry.help, lambda name=entry.name: self.go(name))
        yield SystemCommand("Light or dark", "Change the colours", self.action_theme)
        for command in super().get_system_commands(screen):
            if command.title not in ("Keys",):
                yield command

    def go(self, name: str) -> None:
        """Go to a screen of the navigation."""
        self.action_home()
        if name != "home":
            self.open(name)


def start(settings: Settings, run: str = "", wanted_keys: Mapping[str, str] | None = None) -> int:
    """Run the UI until the user leaves it; returns the exit code."""
    app = OfflineJudgeApp(settings, run, wanted_keys)
    app.run()
    return app.return_code or 0
