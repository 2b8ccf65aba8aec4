"""`models add` and `models rm`: weights that the user has, and weights that may go."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from offline_judge.cli import output
from offline_judge.cli.session import Session, output_options
from offline_judge.domain.numbers import count, size
from offline_judge.errors import UsageError

if TYPE_CHECKING:
    from offline_judge.api import RemovedModel


@click.command("add")
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--name", default="", metavar="NAME", help="Name of the card; else the file's.")
@click.option("--window", type=click.IntRange(min=256), metavar="N", help="Tokens of context.")
@click.option("--family", default="", metavar="F", help="Models of one family share faults.")
@click.option("--licence", default="", metavar="L", help="SPDX, or a name.")
@click.option("--copy", "copy", is_flag=True, help="Copy the files into the models folder.")
@click.option("--move", "move", is_flag=True, help="Move them there.")
@output_options
@click.pass_obj
def add(session: Session, /, path: Path, copy: bool, move: bool, **said: Any) -> None:
    """Make a card of the weights at PATH, which are used where they lie.

    PATH is a GGUF file, one of its parts, or a folder in Hugging Face format. What the card says is
    read from them; the card lies in the data directory and may be changed by hand.
    """
    from offline_judge import api
    from offline_judge.cli.transfer import Transfer

    if copy and move:
        raise UsageError("Weights are copied or moved, not both.", where="--copy --move")
    settings = session.settings()
    with Transfer(session.diagnostics) as transfer:
        added = api.models_add(
            path,
            settings,
            transfer,
            said=said,
            keep="copy" if copy else "move" if move else "refer",
        )
    name = added.model.card.name
    for note in added.notes:
        session.diagnostics.note(f"{name}: {note}.")
    if session.json:
        output.document({"name": name, "path": added.model.path, "notes": added.notes})
        return
    output.text(f"{name}  {added.model.path}")
    session.diagnostics.hint(f"What the card says: offline-judge models show {name}")


@click.command("rm")
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask.")
@output_options
@click.pass_obj
def remove(session: Session, name: str, yes: bool) -> None:
    """Delete the weights of NAME from the models folder, and its card if it was added.

    Files that were only referred to stay where they are.
    """
    from offline_judge import api

    settings = session.settings()
    wanted = api.models_removal(name, settings)
    if not (wanted.size or wanted.card):
        session.diagnostics.note(f"Nothing of {name} is here.")
    else:
        _agree(wanted, yes=yes)
        wanted = api.models_rm(name, settings)
        session.diagnostics.note(f"Deleted: {_told(wanted)}.")
        for path in wanted.kept:
            session.diagnostics.note(f"It stays, for it was only referred to: {path}")
    if session.json:
        output.document(wanted)


def _agree(wanted: RemovedModel, *, yes: bool) -> None:
    """Go on only if the user agrees.

    Raises:
        UsageError: nobody can be asked.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError(
            f"Nobody can be asked whether {_told(wanted)} may be deleted.", remedy="Say so: --yes"
        )
    click.confirm(f"Delete {_told(wanted)}?", abort=True, err=True)


def _told(wanted: RemovedModel) -> str:
    parts = []
    if wanted.size:
        where = count(len(wanted.files), "file") if wanted.files else "an interrupted download"
        parts.append(f"{size(wanted.size)} of {wanted.name} in {where}")
    if wanted.card:
        parts.append(f"the card {wanted.name}")
    return " and ".join(parts)
