"""Starting a run in a process of its own, as the command line would, and how that is written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from offline_judge.api.views import OwnPassage, RunRequest

if TYPE_CHECKING:
    from offline_judge.jobs.starting import Started, Waiting
    from offline_judge.settings import Settings

PROGRAM = "offline-judge"

_FLAGS = {
    "judge": "--judge",
    "search": "--search",
    "locale": "--locale",
    "max_age_days": "--max-age",
    "lanes": "--lanes",
    "seed": "--seed",
}
"""Settings that `run` has a flag for."""
_SWITCHES = {"offline": ("--offline", True), "cache": ("--no-cache", False)}
_GLOBAL = {"data_dir": "--data-dir"}


def start(
    request: RunRequest, settings: Settings, waiting: Waiting = lambda _said: True
) -> Started:
    """Begin a run in a process of its own, which goes on when this one ends.

    It is the very command that `command_line` gives. Returns as soon as there is a run: its engine
    may still be starting, which `watch` tells.

    Args:
        request: What to judge and how.
        settings: As for `run`; what was set by flags is handed on.
        waiting: Told a few times a second what the process said last; false gives the start up.

    Raises:
        StartError: the process ended before there was a run; its message, place and remedy.
        InterruptedRunError: `waiting` gave it up.
        StorageError: what it says cannot be kept.
    """
    from offline_judge.jobs.starting import start_new

    return start_new(_arguments(request, settings), settings, waiting)


def start_resume(
    run_id: str,
    settings: Settings,
    *,
    limit: int | None = None,
    minutes: float | None = None,
    waiting: Waiting = lambda _said: True,
) -> Started:
    """Go on with a run in a process of its own, as `resume` does; otherwise as `start`.

    Raises:
        RunNotFoundError: no run has this id.
        StartError: it may not or could not go on.
        InterruptedRunError: `waiting` gave it up.
        StorageError: what it says cannot be kept.
    """
    from offline_judge.jobs.starting import start_again

    limits = (("--limit", limit), ("--minutes", minutes))
    given = [word for flag, value in limits if value is not None for word in (flag, f"{value:g}")]
    arguments = [*_global_flags(settings), "resume", run_id, *given]
    return start_again(run_id, arguments, settings, waiting)


def start_change(
    run_id: str,
    sample_id: str,
    change: OwnPassage | str,
    settings: Settings,
    waiting: Waiting = lambda _said: True,
) -> Started:
    """Judge a sample of a run again in a process of its own, with its evidence changed.

    As `evidence_add` and `evidence_drop`; returns as soon as there is a derived run.

    Args:
        run_id: The run that judged it.
        sample_id: The sample.
        change: A passage to add, or the id of one to leave out.
        settings: Where runs are.
        waiting: As of `start`.

    Raises:
        StartError: the process ended before there was a run; its message, place and remedy.
        InterruptedRunError: `waiting` gave it up.
        StorageError: what it says, or the passage, cannot be kept.
    """
    from offline_judge.jobs.starting import kept_text, start_new

    begin = [*_global_flags(settings), "evidence"]
    if isinstance(change, str):
        return start_new([*begin, "drop", run_id, sample_id, change], settings, waiting)
    # Through a file: what is in a command, others on this machine can read.
    with kept_text(change.text, settings) as path:
        named = (("--title", change.title), ("--url", change.url), ("--date", change.date))
        more = [f"{flag}={value}" for flag, value in named if value]
        arguments = [*begin, "add", run_id, sample_id, "--file", str(path), *more]
        return start_new(arguments, settings, waiting)


def command_line(request: RunRequest, settings: Settings) -> tuple[str, ...]:
    """The command that judges as `run` would, in words; `shlex.join` makes it one line.

    Only what was set by flags is named: the rest comes from the files and variables that it came
    from here. A setting without a flag stands in front, as a variable of the environment.
    """
    from offline_judge.settings import variable

    known = {*_FLAGS, *_SWITCHES, *_GLOBAL}
    others = [name for name, origin in settings.origins.items() if origin == "flag"]
    bare = [f"{variable(name)}={getattr(settings, name)}" for name in others if name not in known]
    prefix = ["env", *bare] if bare else []
    return (*prefix, PROGRAM, *_arguments(request, settings))


def _arguments(request: RunRequest, settings: Settings) -> list[str]:
    return [
        *_global_flags(settings),
        "run",
        request.method,
        "--data",
        str(request.data),
        *_data_flags(request),
        *_option_flags(request),
        *_setting_flags(settings),
    ]


def _data_flags(request: RunRequest) -> Iterator[str]:
    for column, field in request.mapping.items():
        yield from ("--map", f"{column}={field}")
    for flag, value in (
        ("--format", request.format),
        ("--responses", request.responses),
        ("--candidate", request.candidate),
    ):
        if value is not None:
            yield from (flag, str(value))
    if request.skip_bad:
        yield "--skip-bad"


def _option_flags(request: RunRequest) -> Iterator[str]:
    for flag, value in (("--limit", request.limit), ("--minutes", request.minutes)):
        if value is not None:
            yield from (flag, f"{value:g}")
    for name, value in request.options.items():
        said = str(value).lower() if isinstance(value, bool) else str(value)
        yield from ("-o", f"{name}={said}")
    if request.calibration is not None:
        yield from ("--calibration", str(request.calibration))
    for gate in request.fail_under:
        yield from ("--fail-under", gate)


def _setting_flags(settings: Settings) -> Iterator[str]:
    for name, flag in _FLAGS.items():
        if settings.origins.get(name) == "flag":
            yield from (flag, str(getattr(settings, name)))
    for name, (switch, value) in _SWITCHES.items():
        if settings.origins.get(name) == "flag" and getattr(settings, name) is value:
            yield switch


def _global_flags(settings: Settings) -> Iterator[str]:
    for name, flag in _GLOBAL.items():
        if settings.origins.get(name) == "flag":
            yield from (flag, str(getattr(settings, name)))
