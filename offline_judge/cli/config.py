"""`config`: every setting with its value and where that came from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from offline_judge.cli import output
from offline_judge.cli.lazy import LazyGroup
from offline_judge.cli.session import Session, output_options


@click.group(cls=LazyGroup)
def config() -> None:
    """Show what is set, and where it was set."""


@config.command("show")
@output_options
@click.pass_obj
def show(session: Session) -> None:
    """Show every setting with its value, where that came from, and what it is for.

    A flag beats the environment, that beats offline-judge.toml here, that your own config.toml.
    """
    from offline_judge import api

    view = api.config_show(session.settings())
    if session.json:
        output.document(view)
        return
    columns = [output.Column(name) for name in ("setting", "value", "origin", "for")]
    rows = ([one.name, _value(one.value), one.origin, one.help] for one in view.settings)
    output.table(columns, rows)
    output.text()
    output.pairs([(name, str(folder)) for name, folder in view.folders.items()])
    output.text()
    output.pairs([("settings file", _file(path)) for path in view.files])
    unknown = view.unknown_variables.items()
    if unknown:
        output.text()
        output.pairs([("no setting", f"{n}{_meant(close)}") for n, close in unknown])


def _value(value: Any) -> str:
    """As a settings file would have it, without quotes; a dash where nothing is set."""
    return (value or "-") if isinstance(value, str) else json.dumps(value)


def _file(path: Path) -> str:
    return f"{path}{'' if path.exists() else ' (not there)'}"


def _meant(close: str) -> str:
    return f" (did you mean {close}?)" if close else ""
