"""What all commands share: global options, settings from flags, and the options themselves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import click

from offline_judge.cli.diagnostics import Diagnostics

if TYPE_CHECKING:
    from offline_judge.settings import Settings

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


@dataclass
class Session:
    """One call of the command line; filled by the options as they are read."""

    debug: bool = False
    quiet: bool = False
    json: bool = False
    flags: dict[str, Any] = field(default_factory=dict)
    _warned: bool = field(default=False, init=False)

    @property
    def diagnostics(self) -> Diagnostics:
        """Where to narrate."""
        return Diagnostics(quiet=self.quiet)

    def settings(self) -> Settings:
        """All settings, flags first; the first time, variables that are none are told.

        Raises:
            SettingsError: a value is unknown, of the wrong type or out of range.
        """
        from offline_judge.settings import load_settings, unknown_variables

        if not self._warned:
            self._warned = True
            for name, close in unknown_variables().items():
                hint = f"; did you mean {close}?" if close else "; see: offline-judge config show"
                self.diagnostics.warn(f"{name} is no setting{hint}")
        return load_settings(self.flags)


def session_option(*names: str, **attributes: Any) -> Callable[[Decorated], Decorated]:
    """An option that sets a field of the session."""

    def store(ctx: click.Context, param: click.Parameter, value: Any) -> None:
        if value and param.name:
            setattr(ctx.ensure_object(Session), param.name, value)

    return click.option(*names, expose_value=False, callback=store, **attributes)


def setting_option(*names: str, **attributes: Any) -> Callable[[Decorated], Decorated]:
    """An option that overrides the setting of its name."""

    def store(ctx: click.Context, param: click.Parameter, value: Any) -> None:
        if value is not None and param.name:
            ctx.ensure_object(Session).flags[param.name] = value

    return click.option(*names, expose_value=False, callback=store, default=None, **attributes)


def output_options(command: Decorated) -> Decorated:
    """`--json` and `--quiet`, which every command takes."""
    command = session_option("-q", "--quiet", is_flag=True, help="No narration on stderr.")(command)
    return session_option("--json", is_flag=True, help="Strict JSON on stdout, nothing else.")(
        command
    )


evidence_options = (
    setting_option(
        "--offline",
        is_flag=True,
        flag_value=True,
        help="Search this machine only, and among it what was found before.",
    ),
    setting_option("--locale", metavar="NAME", help="Language or region to search for: pt-BR."),
    setting_option(
        "--max-age",
        "max_age_days",
        type=click.IntRange(min=0),
        metavar="DAYS",
        help="Reuse nothing found longer ago; 0 for no limit.",
    ),
)
"""How what was found before is used."""


def _joined(ctx: click.Context, _param: click.Parameter, value: tuple[str, ...]) -> None:
    if value:
        ctx.ensure_object(Session).flags["judge"] = ", ".join(value)


judge_option = click.option(
    "--judge",
    metavar="NAME",
    multiple=True,
    expose_value=False,
    callback=_joined,
    help="Model card, or a server: ollama:MODEL, lmstudio:MODEL, vllm:MODEL, llama-server:MODEL, "
    "openai:MODEL, each with @URL. Several servers of one model share the work.",
)

engine_options = (
    setting_option(
        "--engine",
        metavar="NAME",
        help="Runs the card: llama_cpp, llama_cpp_python, llama_server, vllm, or what `engines "
        "install` made.",
    ),
    setting_option("--base-url", metavar="URL", help="Address of the server of --judge."),
    setting_option(
        "--allow-remote", metavar="HOST", help="Send what is judged to this other machine."
    ),
    setting_option(
        "--thinking",
        "thinking_tokens",
        type=click.IntRange(min=0),
        metavar="N",
        help="Let the judge think for up to N tokens before it answers.",
    ),
)
"""What runs the judge."""


def judge_options(command: Decorated) -> Decorated:
    """The settings that shape judgments."""
    options = (
        judge_option,
        *engine_options,
        setting_option(
            "--search",
            metavar="NAME",
            help="`corpus`, `corpus:NAME`, or `memory`: what earlier searches found.",
        ),
        *evidence_options,
        setting_option("--lanes", type=click.IntRange(min=1), help="Samples judged at a time."),
        setting_option("--seed", type=click.IntRange(min=0), help="Seed of first attempts."),
        setting_option(
            "--no-cache", "cache", flag_value=False, help="Reuse no completion of earlier runs."
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command
