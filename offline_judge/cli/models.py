"""`models`: which weights there are, and getting them onto this machine."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from offline_judge.cli import output
from offline_judge.cli.lazy import LazyCommand, LazyGroup
from offline_judge.cli.session import Session, output_options
from offline_judge.domain.numbers import size
from offline_judge.errors import HashMismatchError, LicenceError, MissingModelError

if TYPE_CHECKING:
    from offline_judge.api import ModelView
    from offline_judge.settings import Settings

_POOLING = {"mean": "mean of the tokens", "cls": "the first token", "last": "the last token"}

_LAZY = {
    name: LazyCommand(f"offline_judge.cli.{module}", line)
    for name, module, line in (
        ("list", "models:list_models", "All model cards, and which weights are here."),
        ("show", "models:show_model", "A model's card: licence, memory, files, sources."),
        ("pull", "models:pull", "Download weights, check size and hash."),
        ("verify", "models:verify", "Compare weights with their card again."),
        ("add", "models_own:add", "Make a card of weights that you have."),
        ("rm", "models_own:remove", "Delete weights, and a card that was added."),
    )
}


@click.group(cls=LazyGroup, lazy=_LAZY)
def models() -> None:
    """List, show, pull, verify, add, remove models."""


@click.command("list")
@output_options
@click.pass_obj
def list_models(session: Session) -> None:
    """List all model cards, and which weights are here.

    The memory is what an engine with one slot of the window set needs, against what is free now.
    """
    from offline_judge import api

    views = list(api.models_list(session.settings()))
    if session.json:
        output.rows(_entry(view) for view in views)
        return
    names = ("name", "role", "parameters", "quantisation", "size", "window", "memory", "here")
    right = ("parameters", "size", "window")
    output.table([output.Column(name, right=name in right) for name in names], map(_cells, views))


def _entry(view: ModelView) -> dict[str, Any]:
    card: dict[str, Any] = output.plain(view.card)
    memory = output.plain(view.fit) | {"verdict": view.fit.verdict} if view.fit else None
    return {
        **card,
        "state": view.state,
        "path": view.path,
        "memory": memory,
        "added": view.added,
    }


def _cells(view: ModelView) -> list[str]:
    card = view.card
    return [
        card.name,
        card.role,
        _billions(card.parameters),
        card.quantisation,
        size(card.size) if card.size else "at the pull",
        f"{card.window:,}",
        _memory(view),
        {"present": "yes", "partial": "in part"}.get(view.state, "no"),
    ]


def _memory(view: ModelView) -> str:
    """What it needs, and whether it fits; a guess is marked as one."""
    if view.fit is None:
        return "-"
    about = "about " if view.fit.at_least else ""
    return f"{about}{size(view.fit.needed)}, {view.fit.verdict}"


def _billions(parameters: int) -> str:
    if parameters < 10**9:
        return f"{parameters / 10**6:.0f} M"
    return f"{parameters / 10**9:.1f} B"


@click.command("show")
@click.argument("name")
@output_options
@click.pass_obj
def show_model(session: Session, name: str) -> None:
    """Show a model's card: licence, memory, files with their hashes, sources."""
    from offline_judge import api

    view = api.models_show(name, session.settings())
    if session.json:
        output.document(_entry(view))
        return
    card = view.card
    pairs = [
        ("name", card.name),
        ("family", card.family),
        ("role", card.role),
        ("parameters", _billions(card.parameters)),
        ("quantisation", card.quantisation),
        ("window", f"{card.window:,} tokens"),
        ("licence", _licence(card)),
        *_embedding(card.embedding),
        *_needs(view, session.settings()),
        *_listed(card),
        ("here", str(view.path) if view.path else view.state),
    ]
    for file in card.files:
        sources = "".join(f"\nfrom {source.label}" for source in file.sources)
        pairs.append(("file", f"{file.name}, {size(file.size)}\nsha256 {file.sha256}{sources}"))
    output.pairs(pairs)
    if view.state != "present":
        session.diagnostics.hint(view.remedy)


def _licence(card: Any) -> str:
    kinds = (
        ("not for commercial use", card.non_commercial),
        ("given by the hub to those who accepted its terms", card.gated),
    )
    notes = [note for note, is_so in kinds if is_so]
    return "\n".join([", ".join([card.licence, *notes]), *filter(None, [card.licence_url])])


def _needs(view: ModelView, settings: Settings) -> list[tuple[str, str]]:
    """What it takes of the memory, against what is free."""
    fit = view.fit
    if fit is None:
        return []
    least = "at least " if fit.at_least else ""
    free = "" if fit.free is None else f" of {size(fit.free)} free"
    told = f"{fit.verdict}: {least}{size(fit.needed)}{free}, with one slot"
    if fit.slot and view.card.embedding is None:
        window = min(settings.window, view.card.window)
        told += f" of {window:,} tokens; each further slot {size(fit.slot)}"
    return [("memory", told)]


def _listed(card: Any) -> list[tuple[str, str]]:
    """Where the files are listed, for a card that names a repository."""
    if card.hub is None:
        return []
    pinned = "" if card.files else "\nthe hub is asked for files and hashes at the first pull"
    return [("hub", f"{card.hub.repository} {card.hub.revision}, {card.hub.pattern}{pinned}")]


def _embedding(how: Any) -> list[tuple[str, str]]:
    """How an embedder makes vectors; nothing for other models."""
    if how is None:
        return []
    pooled = f"{how.dimension} numbers, {_POOLING[how.pooling]}"
    prefixes = [
        (f"{kind} prefix", json.dumps(prefix, ensure_ascii=False))
        for kind, prefix in (("query", how.query_prefix), ("passage", how.passage_prefix))
        if prefix
    ]
    return [("vectors", f"{pooled}, texts cut behind {how.max_tokens:,} tokens"), *prefixes]


@click.command("pull")
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@click.option("--repin", is_flag=True, help="Take the files that the hub has by now.")
@click.option("--accept-licence", is_flag=True, help="Accept the licences that are to be accepted.")
@output_options
@click.pass_obj
def pull(session: Session, names: tuple[str, ...], repin: bool, accept_licence: bool) -> None:
    """Download models, check size and hash; what was begun is resumed.

    Where a card names a repository of the hub only, the files are those that the hub lists at the
    first pull, from then on. HF_ENDPOINT, HF_TOKEN and HF_HUB_OFFLINE are respected.
    """
    settings = session.settings()
    for name in names:
        path = _pull_one(session, name, settings, repin=repin, accept=accept_licence)
        if session.json:
            output.rows([{"name": name, "path": path}])
        else:
            output.text(f"{name}  {path}")


def _pull_one(
    session: Session, name: str, settings: Settings, *, repin: bool, accept: bool
) -> Path:
    """Pull a model, and ask for a licence that must be accepted where somebody can answer."""
    from offline_judge import api
    from offline_judge.cli.transfer import Transfer

    try:
        with Transfer(session.diagnostics) as transfer:
            return api.models_pull(name, settings, transfer, repin=repin)
    except LicenceError as error:
        asked = sys.stdin.isatty() and not accept
        if not (accept or asked):
            raise
        session.diagnostics.warn(error.message)
    if asked:
        click.confirm("Do you accept this licence?", abort=True, err=True)
    with Transfer(session.diagnostics) as transfer:
        return api.models_pull(name, settings, transfer, repin=repin, accept_licence=True)


@click.command("verify")
@click.argument("name")
@output_options
@click.pass_obj
def verify(session: Session, name: str) -> None:
    """Read a model's files again and compare size and hash with its card."""
    from offline_judge import api
    from offline_judge.cli.transfer import Transfer

    with Transfer(session.diagnostics) as transfer:
        report = api.models_verify(name, session.settings(), transfer)
    if session.json:
        output.document({"model": report.model, "ok": report.ok, "files": report.files})
    else:
        checked = [(file.name, file.problem or "size and hash are right") for file in report.files]
        output.pairs(checked)
    if not report.ok and not any(file.path.exists() for file in report.files):
        raise MissingModelError(
            f"The weights of {report.model} are not here",
            remedy=report.remedy,
        )
    if not report.ok:
        raise HashMismatchError(
            f"The weights of {report.model} are not what its card promises",
            where=", ".join(str(file.path) for file in report.files if file.problem),
            remedy=report.remedy,
        )
