"""`engines`: engines that live in environments of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from offline_judge.cli import output
from offline_judge.cli.lazy import LazyGroup
from offline_judge.cli.session import Session, output_options
from offline_judge.domain.numbers import size

if TYPE_CHECKING:
    from offline_judge.api import EngineView


@click.group(cls=LazyGroup)
def engines() -> None:
    """List, install, show, rm engines for GPUs, llama-cpp-python, vLLM."""


@engines.command("list")
@output_options
@click.pass_obj
def list_engines(session: Session) -> None:
    """List the engines that can be installed, and which are."""
    from offline_judge import api

    views = api.engines_list(session.settings())
    if session.json:
        output.rows(views)
        return
    names = ("name", "what", "state", "version", "disk")
    cells = [
        [view.name, view.title, view.state, view.version or "-", _disk(view)] for view in views
    ]
    output.table([output.Column(name, right=name == "disk") for name in names], cells)


@engines.command("install")
@click.argument("name")
@click.option("--index-url", default="", metavar="URL", help="Package index in place of its own.")
@output_options
@click.pass_obj
def install(session: Session, name: str, index_url: str) -> None:
    """Install an engine into an environment of its own."""
    from offline_judge import api

    diagnostics = session.diagnostics
    view = api.engines_install(name, session.settings(), diagnostics.note, index=index_url)
    _tell(session, view)
    diagnostics.hint(f"To judge with it: offline-judge run METHOD --engine {name} ...")


@engines.command("show")
@click.argument("name")
@output_options
@click.pass_obj
def show(session: Session, name: str) -> None:
    """Show one engine: state, version, what it says of its devices."""
    from offline_judge import api

    _tell(session, api.engines_show(name, session.settings()))


@engines.command("rm")
@click.argument("name")
@output_options
@click.pass_obj
def remove(session: Session, name: str) -> None:
    """Take an engine's environment away."""
    from offline_judge import api

    view = api.engines_rm(name, session.settings())
    if session.json:
        output.document({"removed": view.name, "folder": view.folder})
    else:
        session.diagnostics.note(f"Removed {view.folder}.")


def _tell(session: Session, view: EngineView) -> None:
    if session.json:
        output.document(view)
        return
    devices = [f"{kind}: {words}" for kind, words in view.details.get("devices", ())]
    pairs = [
        ("name", view.name),
        ("what", view.title),
        ("state", view.state),
        ("version", view.version or "-"),
        ("runs as", view.backend),
        ("folder", str(view.folder)),
        *(("device", words) for words in devices),
    ]
    output.pairs(pairs)


def _disk(view: EngineView) -> str:
    return f"about {size(view.disk)}"
