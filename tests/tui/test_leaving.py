"""Leaving: what goes on is asked about, and the terminal is as it was whatever ends the UI."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from offline_judge_tui.app import OfflineJudgeApp
from offline_judge_tui.screens.leaving import Leaving
from textual.widgets import Button
from ui_parts import PATIENCE_S, Place, ended, shown_rows, until

import offline_judge
from offline_judge import api
from offline_judge.settings import Settings

# Not a conftest.py: the type checker knows modules by their names, and there is one already.
pytest_plugins = ("ui_fixtures",)

ROOT = Path(str(offline_judge.__file__)).parents[1]
ALTERNATE, NORMAL = b"\x1b[?1049h", b"\x1b[?1049l"


@pytest.mark.parametrize(("answer", "goes_on"), [("leave", True), ("cancel", False)])
async def test_runs_begun_here_are_asked_about(place: Place, answer: str, goes_on: bool) -> None:
    settings = place.settings(judge=place.script(latency_s=0.2), cache=False)
    run_id = api.start(api.RunRequest("direct", place.data(12)), settings).run_id
    app = OfflineJudgeApp(settings)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        app.begun(run_id)
        await until(pilot, lambda: bool(shown_rows(pilot)))
        await pilot.press("q")
        await until(pilot, lambda: isinstance(app.screen, Leaving))
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(app.screen, Leaving))
        await pilot.press("ctrl+q")
        await until(pilot, lambda: isinstance(app.screen, Leaving))
        app.screen.query_one(f"#{answer}", Button).press()
        await until(pilot, lambda: not app.is_running)
    if goes_on:
        assert api.run_holder(run_id, settings)
    else:
        assert ended(run_id, settings).summary.status == "cancelled"


async def test_without_runs_it_leaves_at_once(place: Place, settings: Settings) -> None:
    place.run(settings)
    app = OfflineJudgeApp(settings)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: bool(shown_rows(pilot)))
        await pilot.press("q")
        await until(pilot, lambda: not app.is_running)


class Terminal:
    """The program on a terminal of its own."""

    def __init__(self, *arguments: str, program: tuple[str, ...] = ("-m", "offline_judge")) -> None:
        self.mine, theirs = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, *program, *arguments],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'tui'}", "TERM": "xterm-256color"},
            start_new_session=True,
        )
        os.close(theirs)
        self.said = b""

    def read_until(self, what: bytes) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while what not in self.said:
            assert time.monotonic() < deadline, self.said[-2000:]
            self._read(0.1)

    def end(self) -> int:
        deadline = time.monotonic() + PATIENCE_S
        while self.process.poll() is None:
            assert time.monotonic() < deadline
            self._read(0.05)
        self._read(0.2)
        os.close(self.mine)
        return self.process.returncode

    def _read(self, seconds: float) -> None:
        ready, _, _ = select.select([self.mine], [], [], seconds)
        try:
            self.said += os.read(self.mine, 65536) if ready else b""
        except OSError:  # the other end is closed
            time.sleep(seconds)


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)], ids=["term", "hup"]
)
def test_a_signal_leaves_the_terminal_as_it_was(
    place: Place, settings: Settings, number: signal.Signals, code: int
) -> None:
    place.run(settings)
    terminal = Terminal()
    terminal.read_until(b"data.jsonl")
    assert ALTERNATE in terminal.said
    terminal.process.send_signal(number)
    assert terminal.end() == code
    assert terminal.said.rindex(NORMAL) > terminal.said.rindex(ALTERNATE)


def test_it_ends_when_its_terminal_has_gone(place: Place, settings: Settings) -> None:
    place.run(settings)
    terminal = Terminal()
    terminal.read_until(b"data.jsonl")
    os.close(terminal.mine)
    assert terminal.process.wait(PATIENCE_S) == 129


def test_a_fault_of_the_ui_leaves_the_terminal_as_it_was_and_ends_with_1(
    place: Place, settings: Settings
) -> None:
    place.run(settings)
    broken = place.path / "broken.py"
    broken.write_text(
        "import offline_judge_tui.screens.home as home\n"
        "from offline_judge.cli.main import main\n"
        "def fault(self): raise RuntimeError('a fault')\n"
        "home.HomeScreen.action_new = fault\n"
        "main(['tui'])\n"
    )
    terminal = Terminal(program=(str(broken),))
    terminal.read_until(b"data.jsonl")
    os.write(terminal.mine, b"n")
    assert terminal.end() == 1
    assert b"a fault" in terminal.said
    assert terminal.said.rindex(NORMAL) > terminal.said.rindex(ALTERNATE)


def test_q_ends_it_with_0(place: Place, settings: Settings) -> None:
    run_id = place.run(settings)
    terminal = Terminal("tui", run_id)
    terminal.read_until(run_id.encode())
    os.write(terminal.mine, b"\x11")
    assert terminal.end() == 0


def test_without_a_terminal_the_help_is_shown(place: Place, settings: Settings) -> None:
    command = [sys.executable, "-m", "offline_judge"]
    env = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'tui'}"}
    done = subprocess.run(command, capture_output=True, text=True, env=env, check=True)
    assert "Usage" in done.stdout
    done = subprocess.run([*command, "tui"], capture_output=True, text=True, env=env, check=False)
    assert done.returncode == 2
    assert "needs a terminal" in done.stderr
