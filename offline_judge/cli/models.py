"""`models`: which weights there are, and getting them onto this machine."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from offline_judge.cli import output
from offline_judge.cli.lazy import LazyGroup
from offline_judge.cli.session import Session, output_options
from offline_judge.domain.numbers import size
from offline_judge.errors import HashMismatchError, MissingModelError

if TYPE_CHECKING:
    from offline_judge.api import ModelView

_POOLING = {"mean": "mean of the tokens", "cls": "the first token", "last": "the last token"}


@click.group(cls=LazyGroup)
def models() -> None:
    """List, show, pull, verify models."""


@models.command("list")
@output_options
@click.pass_obj
def list_models(session: Session) -> None:
    """List all model cards, and which weights are here."""
    from offline_judge import api

    views = list(api.models_list(session.settings()))
    if session.json:
        output.rows(_entry(view) for view in views)
        return
    names = ("name", "role", "parameters", "quantisation", "size", "window", "here")
    right = ("parameters", "size", "window")
    output.table([output.Column(name, right=name in right) for name in names], map(_cells, views))


def _entry(view: ModelView) -> dict[str, Any]:
    card: dict[str, Any] = output.plain(view.card)
    return {**card, "state": view.state, "path": view.path}


def _cells(view: ModelView) -> list[str]:
    card = view.card
    return [
        card.name,
        card.role,
        _billions(card.parameters),
        card.quantisation,
        size(card.size),
        f"{card.window:,}",
        {"present": "yes", "partial": "in part"}.get(view.state, "no"),
    ]


def _billions(parameters: int) -> str:
    if parameters < 10**9:
        return f"{parameters / 10**6:.0f} M"
    return f"{parameters / 10**9:.1f} B"


@models.command("show")
@click.argument("name")
@output_options
@click.pass_obj
def show_model(session: Session, name: str) -> None:
    """Show a model's card: licence, files with their hashes, sources."""
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
        ("licence", card.licence),
        *_embedding(card.embedding),
        ("here", str(view.path) if view.path else view.state),
    ]
    for file in card.files:
        sources = "".join(f"\nfrom {source.label}" for source in file.sources)
        pairs.append(("file", f"{file.name}, {size(file.size)}\nsha256 {file.sha256}{sources}"))
    output.pairs(pairs)
    if view.state != "present":
        session.diagnostics.hint(f"To get it: offline-judge models pull {card.name}")


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


@models.command("pull")
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@output_options
@click.pass_obj
def pull(session: Session, names: tuple[str, ...]) -> None:
    """Download models, check size and hash; what was begun is resumed."""
    from offline_judge import api
    from offline_judge.cli.transfer import Transfer

    settings = session.settings()
    for name in names:
        with Transfer(session.diagnostics) as transfer:
            path = api.models_pull(name, settings, transfer)
        if session.json:
            output.rows([{"name": name, "path": path}])
        else:
            output.text(f"{name}  {path}")


@models.command("verify")
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
            remedy=f"Fetch them: offline-judge models pull {report.model}",
        )
    if not report.ok:
        raise HashMismatchError(
            f"The weights of {report.model} are not what its card promises",
            where=", ".join(str(file.path) for file in report.files if file.problem),
            remedy=f"Fetch them anew: offline-judge models pull {report.model}",
        )
