"""`tui`, and the program without a command: the terminal UI."""

from __future__ import annotations

import sys

import click

from offline_judge.cli.session import Session
from offline_judge.errors import UsageError


@click.command()
@click.argument("run_id", metavar="[RUN]", default="")
@click.pass_obj
def tui(session: Session, run_id: str) -> None:
    """Open the terminal UI, with RUN at once where it is given."""
    if not on_terminal():
        raise UsageError(
            "The terminal UI needs a terminal.",
            remedy="Without one: offline-judge runs show RUN, offline-judge attach RUN",
        )
    open_ui(session, run_id)


def on_terminal() -> bool:
    """Whether there is a terminal for the UI, which draws on stderr and reads keys from stdin."""
    return all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr))


def open_ui(session: Session, run_id: str = "") -> None:
    """Run the UI until the user leaves it, and end with its code.

    Raises:
        SettingsError: a setting or the section of keys cannot be used.
    """
    from offline_judge_tui.app import start

    from offline_judge.settings import load_keys

    code = start(session.settings(), run_id, load_keys())
    if code:
        click.get_current_context().exit(code)
