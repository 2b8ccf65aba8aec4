"""`corpus`: documents made searchable."""

from __future__ import annotations

import time
from pathlib import Path

import click

from offline_judge.cli import output
from offline_judge.cli.diagnostics import Diagnostics
from offline_judge.cli.lazy import LazyGroup
from offline_judge.cli.session import Session, output_options, setting_option
from offline_judge.domain.corpus import CorpusState
from offline_judge.domain.numbers import count, duration, size

PROGRESS_INTERVAL_S = 5.0
SHOWN_LEFT_OUT = 5
SMALL = 100  # fewer texts are embedded before anybody has read that they are


@click.group(cls=LazyGroup)
def corpus() -> None:
    """Build, list and remove corpora to search in."""


embedder_option = setting_option("--embedder", metavar="NAME", help="Model card of the embedder.")


@corpus.command("build")
@click.argument("name")
@click.argument("paths", metavar="[PATH]...", nargs=-1, type=click.Path(path_type=Path))
@click.option("--no-vectors", is_flag=True, help="For searching by words only.")
@click.option("--skip-bad", is_flag=True, help="Leave out broken files and bad rows.")
@embedder_option
@output_options
@click.pass_obj
def build(
    session: Session, name: str, paths: tuple[Path, ...], no_vectors: bool, skip_bad: bool
) -> None:
    """Build corpus NAME from files and folders, or bring it up to date.

    PATH is JSONL with id, title and text; Markdown, text, HTML or PDF; or a folder of these.
    Without PATH: from where it was built before, or `factbook`, made from the World Factbook that
    came with the program. It can be searched by words at once; making the vectors takes longer
    and may be interrupted.
    """
    from offline_judge import api

    told = _Told(session.diagnostics, name)
    state = api.corpus_build(
        name, paths or None, session.settings(), told, vectors=not no_vectors, skip_bad=skip_bad
    )
    _left_out(session.diagnostics, state)
    _report(session, state)
    session.diagnostics.hint(f"To search in it: --search corpus:{name}")


@corpus.command("embed")
@click.argument("name")
@embedder_option
@output_options
@click.pass_obj
def embed(session: Session, name: str) -> None:
    """Make the vectors that corpus NAME lacks; an interrupted call is gone on with."""
    from offline_judge import api

    told = _Told(session.diagnostics, name)
    _report(session, api.corpus_embed(name, session.settings(), told))


@corpus.command("list")
@output_options
@click.pass_obj
def list_corpora(session: Session) -> None:
    """List all corpora, and how far their vectors are."""
    from offline_judge import api

    states = api.corpus_list(session.settings())
    if session.json:
        output.rows(states)
        return
    right = ("documents", "passages", "vectors", "size")
    names = ("name", "documents", "passages", "vectors", "embedder", "size", "source")
    output.table([output.Column(name, right=name in right) for name in names], map(_cells, states))
    for state in states:
        if state.problem:
            session.diagnostics.warn(state.problem)
    if not states:
        session.diagnostics.hint("To build one: offline-judge corpus build NAME PATH...")


@corpus.command("rm")
@click.argument("name")
@output_options
@click.pass_obj
def remove(session: Session, name: str) -> None:
    """Delete corpus NAME with its vectors; what it was built from stays."""
    from offline_judge import api

    returns = api.corpus_rm(name, session.settings())
    if session.json:
        output.document({"name": name, "rebuilt_on_next_use": returns})
    else:
        output.text(f"{name}  removed")
    if returns:
        session.diagnostics.note(f"`{name}` is built again when it is next searched.")


def _cells(state: CorpusState) -> list[str]:
    return [
        state.name,
        f"{state.documents:,}",
        f"{state.passages:,}",
        f"{state.embedded:,}/{state.passages:,}",
        state.embedder or "-",
        size(state.size),
        "damaged" if state.problem else ", ".join(state.paths) or "shipped",
    ]


def _report(session: Session, state: CorpusState) -> None:
    if session.json:
        output.document(state)
        return
    counts = f"{count(state.documents, 'document')}, {count(state.passages, 'passage')}"
    way = "searched by words and vectors" if state.complete else "searched by words"
    output.text(f"{state.name}  {counts}, {way}")


def _left_out(diagnostics: Diagnostics, state: CorpusState) -> None:
    for line in state.left_out[:SHOWN_LEFT_OUT]:
        diagnostics.warn(f"left out: {line}")
    more = len(state.left_out) - SHOWN_LEFT_OUT
    if more > 0:
        diagnostics.warn(f"and {more:,} more, which --json lists")


class _Told:
    """Tells how far a build is: at once, then every few seconds."""

    def __init__(self, diagnostics: Diagnostics, name: str) -> None:
        self._diagnostics = diagnostics
        self._name = name
        self._next = 0.0
        self._began: tuple[float, int] | None = None

    def indexed(self, documents: int, passages: int) -> None:
        if self._due():
            self.note(f"{count(documents, 'document')}, {count(passages, 'passage')} indexed")

    def embedded(self, done: int, total: int) -> None:
        now = time.monotonic()
        if self._began is None:
            self._began = (now, done)
            if total - done > SMALL:
                self.note(
                    f"`{self._name}` can be searched by words now. Embedding {total - done:,} of "
                    f"{total:,} texts; Ctrl-C stops it, `offline-judge corpus embed {self._name}` "
                    "goes on."
                )
                self._next = now + PROGRESS_INTERVAL_S
            return
        began, before = self._began
        if self._due() and done > before:
            left = (now - began) / (done - before) * (total - done)
            self.note(f"{done:,} of {total:,} texts embedded, about {duration(left)} left")

    def note(self, text: str) -> None:
        self._diagnostics.note(text)

    def warn(self, text: str) -> None:
        self._diagnostics.warn(text)

    def _due(self) -> bool:
        now = time.monotonic()
        if now < self._next:
            return False
        self._next = now + PROGRESS_INTERVAL_S
        return True
