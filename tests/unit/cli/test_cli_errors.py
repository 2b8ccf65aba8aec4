from __future__ import annotations

from pathlib import Path

import click
import pytest
from cli_fakes import CommandLine, answering

from offline_judge import errors
from offline_judge.cli.diagnostics import EXIT_CODES
from offline_judge.cli.lazy import LazyGroup
from offline_judge.cli.main import _COMMANDS, root
from offline_judge.errors import OfflineJudgeError


@pytest.fixture
def cli(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> CommandLine:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OFFLINE_JUDGE_DATA_DIR", str(tmp_path / "data"))
    return CommandLine(monkeypatch, capsys)


def tree(error: type[OfflineJudgeError]) -> list[type[OfflineJudgeError]]:
    return [error, *(below for child in error.__subclasses__() for below in tree(child))]


@pytest.mark.parametrize("error", tree(OfflineJudgeError))
def test_each_error_ends_with_its_code_and_a_message_on_stderr(
    cli: CommandLine, error: type[OfflineJudgeError]
) -> None:
    cli.api.list_runs = answering(error("It broke", where="here", remedy="do this"))

    cli("runs", "list", "--json")

    assert cli.code == error.exit_code
    assert cli.out == ""
    assert cli.err.splitlines() == ["error: It broke", "  at here", "  do this"]


def test_every_code_of_the_error_tree_is_documented(cli: CommandLine) -> None:
    documented = dict(EXIT_CODES)
    assert {error.exit_code for error in tree(OfflineJudgeError)} <= documented.keys()

    cli("--help")

    assert all(f"{code} {word}" in " ".join(cli.out.split()) for code, word in EXIT_CODES)


def test_a_message_cannot_drive_the_terminal(cli: CommandLine) -> None:
    cli.api.list_runs = answering(errors.DataError("row \x1b[2J", where="\x07", remedy="\x9b"))

    assert not set("\x1b\x07\x9b") & set(cli("runs", "list").err)


def test_an_interrupt_ends_with_130(cli: CommandLine) -> None:
    cli.api.list_runs = answering(KeyboardInterrupt())

    assert cli("runs", "list").code == 130
    assert cli.err == "Interrupted.\n"


def test_the_unexpected_is_excused_and_kept_for_a_report(cli: CommandLine, tmp_path: Path) -> None:
    cli.api.list_runs = answering(ZeroDivisionError("by nothing"))

    cli("runs", "list")

    assert cli.code == 1
    assert cli.out == ""
    assert "ZeroDivisionError: by nothing" in cli.err
    assert "Traceback" not in cli.err
    (log,) = (tmp_path / "data" / "logs").glob("crash-*.log")
    assert str(log) in cli.err
    assert "Traceback" in log.read_text()


def test_debug_shows_the_traceback(cli: CommandLine, tmp_path: Path) -> None:
    cli.api.list_runs = answering(ZeroDivisionError("by nothing"))

    assert "Traceback" in cli("--debug", "runs", "list").err
    assert not (tmp_path / "data").exists()


def test_a_log_that_cannot_be_written_is_shown_instead(cli: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file, no folder")
    cli.api.list_runs = answering(ZeroDivisionError())

    assert "Traceback" in cli("runs", "list").err


def test_a_broken_pipe_inside_the_program_is_not_taken_for_a_closed_stdout(
    cli: CommandLine,
) -> None:
    cli.api.list_runs = answering(BrokenPipeError(32, "the engine's"))

    assert cli("runs", "list").code == 1


def test_a_package_that_is_not_installed_is_named(cli: CommandLine) -> None:
    cli.api.list_runs = answering(ModuleNotFoundError("No module named 'x.y'", name="x.y"))

    assert cli("runs", "list").code == 3
    assert "The package `x` is not installed" in cli.err


def test_a_module_of_ours_that_is_missing_is_our_fault(cli: CommandLine) -> None:
    cli.api.list_runs = answering(ModuleNotFoundError("gone", name="offline_judge.gone"))

    assert cli("runs", "list").code == 1


def test_a_full_disk_is_no_crash(cli: CommandLine) -> None:
    cli.api.list_runs = answering(OSError(28, "No space left on device"))

    assert cli("runs", "list").code == 1
    assert "The disk is full" in cli.err


def test_a_bad_setting_is_a_usage_error(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OFFLINE_JUDGE_LANES", "many")
    cli.api.list_runs = answering([])

    assert cli("runs", "list").code == 2
    assert "OFFLINE_JUDGE_LANES" in cli.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["rum"], "Did you mean `run`?"),
        (["runs", "exprt"], "Did you mean `export`?"),
        (["zzz"], "No such command `zzz`."),
        (["run", "sage"], "--data"),
        (["--wrong"], "--wrong"),
    ],
)
def test_a_wrong_command_is_a_usage_error(
    cli: CommandLine, arguments: list[str], said: str
) -> None:
    cli(*arguments)

    assert cli.code == 2
    assert cli.out == ""
    assert said in cli.err


def test_without_arguments_there_is_help(cli: CommandLine) -> None:
    assert cli().code == 0
    assert "Commands:" in cli.out


@pytest.mark.parametrize("name", list(_COMMANDS))
def test_each_name_in_the_help_is_a_command(name: str) -> None:
    assert _COMMANDS[name].load().name == name


def leaves(command: click.Command, name: str) -> list[tuple[str, click.Command]]:
    if not isinstance(command, click.Group):
        return [(name, command)]
    ctx = click.Context(command)
    names = command.list_commands(ctx)
    children = [(child, command.get_command(ctx, child)) for child in names]
    return [leaf for child, found in children if found for leaf in leaves(found, f"{name} {child}")]


# The terminal UI draws and says nothing.
TELLING = [leaf for leaf in leaves(root, "") if leaf[0] != " tui"]


@pytest.mark.parametrize(("name", "command"), TELLING)
def test_every_command_takes_json_and_quiet(name: str, command: click.Command) -> None:
    options = {flag for parameter in command.params for flag in parameter.opts}

    assert {"--json", "--quiet", "-q"} <= options
    assert command.help


def test_a_group_is_lazy() -> None:
    assert isinstance(root, LazyGroup)
