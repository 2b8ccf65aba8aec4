"""The entry point: global options, the list of commands, and the last word on every error."""

from __future__ import annotations

import contextlib
import errno
import os
import select
import sys
from collections.abc import Sequence
from typing import NoReturn

import click

from offline_judge.cli.diagnostics import DONE, EXIT_CODES, FAILED, INTERRUPTED, Diagnostics
from offline_judge.cli.lazy import LazyCommand, LazyGroup
from offline_judge.cli.session import Session, session_option, setting_option
from offline_judge.errors import MissingDependencyError, OfflineJudgeError

PROGRAM = "offline-judge"

_COMMANDS = {
    "demo": LazyCommand("offline_judge.cli.demo:demo", "Judge the twelve shipped samples."),
    "run": LazyCommand("offline_judge.cli.run:run", "Judge a data file."),
    "ask": LazyCommand("offline_judge.cli.ask:ask", "Judge one response, step by step."),
    "resume": LazyCommand("offline_judge.cli.run:resume", "Go on with a run."),
    "attach": LazyCommand("offline_judge.cli.attach:attach", "Watch a run in progress."),
    "pause": LazyCommand("offline_judge.cli.attach:pause", "Hold a run in progress up."),
    "unpause": LazyCommand("offline_judge.cli.attach:unpause", "Let a paused run go on."),
    "cancel": LazyCommand("offline_judge.cli.run:cancel", "Stop a run in progress."),
    "show": LazyCommand("offline_judge.cli.show:show", "Show how one sample was judged."),
    "runs": LazyCommand("offline_judge.cli.runs:runs", "List, show, export, rm runs."),
    "models": LazyCommand("offline_judge.cli.models:models", "List, show, pull, verify models."),
    "engines": LazyCommand("offline_judge.cli.engines:engines", "List, install, rm engines."),
    "corpus": LazyCommand("offline_judge.cli.corpus:corpus", "Build, embed, list, rm corpora."),
    "evidence": LazyCommand("offline_judge.cli.evidence:evidence", "Look at what was found."),
    "score": LazyCommand("offline_judge.cli.score:score", "Compare a run with people."),
    "calibrate": LazyCommand("offline_judge.cli.calibrate:calibrate", "Fit how it is read."),
    "study": LazyCommand("offline_judge.cli.study:study", "Compare ways of judging."),
    "tui": LazyCommand("offline_judge.cli.tui:tui", "Open the terminal UI, at a run."),
    "judge": LazyCommand("offline_judge.cli.judge:judge", "Check whether a judge is fit."),
    "doctor": LazyCommand("offline_judge.cli.doctor:doctor", "Look at what a run needs."),
    "config": LazyCommand("offline_judge.cli.config:config", "Show what is set, and where."),
}

_EPILOG = "Exit codes: " + ", ".join(f"{code} {word}" for code, word in EXIT_CODES) + "."


def _print_version(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if not value or ctx.resilient_parsing:
        return
    from offline_judge import __version__

    click.echo(f"{PROGRAM} {__version__}")
    ctx.exit()


@click.group(
    name=PROGRAM,
    cls=LazyGroup,
    lazy=_COMMANDS,
    epilog=_EPILOG,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@setting_option("--data-dir", metavar="DIR", help="Where runs, corpora and models are.")
@session_option("--debug", is_flag=True, help="Show the traceback of an unexpected error.")
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_print_version,
    help="Show the version.",
)
@click.pass_context
def root(ctx: click.Context) -> None:
    """Judge language-model output on this machine, with open-weight judges.

    Without a command it opens the terminal UI. RUN below is a run's id, the beginning of one, or
    `last`.
    """
    if ctx.invoked_subcommand is not None:
        return
    from offline_judge.cli.tui import on_terminal, open_ui

    if on_terminal():
        open_ui(ctx.ensure_object(Session))
    else:
        click.echo(ctx.get_help())


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit with its code."""
    # A stream that was closed before the start is None; what goes there goes nowhere.
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character gets an escape instead of an exception.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    session = Session()
    code = _guarded(list(sys.argv[1:] if arguments is None else arguments), session)
    sys.exit(code)


def _guarded(arguments: list[str], session: Session) -> int:
    """Run a command; turn whatever it raises into a message on stderr and an exit code."""
    try:
        code = _invoke(arguments, session)
        sys.stdout.flush()
    except click.exceptions.Exit as error:
        return error.exit_code
    except click.ClickException as error:
        with contextlib.suppress(OSError):
            error.show()
        return error.exit_code
    except OfflineJudgeError as error:
        session.diagnostics.failure(error)
        if session.debug:
            _print_traceback()
        return error.exit_code
    except (KeyboardInterrupt, EOFError, click.Abort):
        session.diagnostics.note("Interrupted.")
        return INTERRUPTED
    except OSError as error:
        return _system_error(error, session)
    except ModuleNotFoundError as error:
        return _missing(error, session)
    except Exception:  # noqa: BLE001 - the last stop: nobody above could tell the user
        return _unexpected(session)
    return code


def _system_error(error: OSError, session: Session) -> int:
    if isinstance(error, BrokenPipeError) and _reader_is_gone():
        return DONE  # `... | head` has read all it wanted
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        session.diagnostics.error(f"The disk is full: {error}")
        return FAILED
    return _unexpected(session)


def _missing(error: ModuleNotFoundError, session: Session) -> int:
    """A package that the installation lacks; a module of our own would be a fault of ours."""
    package = (error.name or "").partition(".")[0]
    if not package or package == __name__.partition(".")[0]:
        return _unexpected(session)
    missing = MissingDependencyError(
        f"The package `{package}` is not installed", remedy="Install this program anew with pip."
    )
    session.diagnostics.failure(missing)
    return missing.exit_code


def _invoke(arguments: list[str], session: Session) -> int:
    with root.make_context(PROGRAM, arguments, obj=session) as ctx:
        root.invoke(ctx)
    return DONE


def _reader_is_gone() -> bool:
    """Whether stdout is a pipe without a reader; if so, nothing more is written to it."""
    try:
        descriptor = sys.stdout.fileno()
        poll = select.poll()
        poll.register(descriptor, 0)
        gone = any(state & (select.POLLERR | select.POLLHUP) for _, state in poll.poll(0))
    except (OSError, ValueError):
        return False
    if gone:
        # The interpreter flushes once more at exit and must find a place that takes it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)
    return gone


def _unexpected(session: Session) -> int:
    error = sys.exc_info()[1]
    diagnostics = Diagnostics()
    diagnostics.error(f"Sorry, this should not have happened: {type(error).__name__}: {error}")
    if session.debug:
        _print_traceback()
        return FAILED
    from offline_judge.cli.crash import write_crash_log

    path = write_crash_log(session.flags)
    if path is None:
        _print_traceback()
    else:
        diagnostics.error(f"The whole story is in {path} (or type the command with --debug).")
    return FAILED


def _print_traceback() -> None:
    import traceback

    Diagnostics().note(traceback.format_exc().rstrip())
