"""`corpus`: documents made searchable."""

from __future__ import annotations

import time
from pathlib import Path

import click

from offline_judge.cli import output
from offline_judge.cli.diagnostics import Diagnostics
from offline_judge.cli.lazy import LazyGroup
from offline_judge.cli.numbers import count
from offline_judge.cli.session import Session, output_options

PROGRESS_INTERVAL_S = 5.0


@click.group(cls=LazyGroup)
def corpus() -> None:
    """Build corpora to search in."""


@corpus.command("build")
@click.argument("name")
@click.argument("file", required=False, type=click.Path(path_type=Path))
@output_options
@click.pass_obj
def build(session: Session, name: str, file: Path | None) -> None:
    """Build corpus NAME from FILE, JSONL with id, title and text.

    Without FILE: `factbook`, made from the World Factbook that came with the program.
    """
    from offline_judge import api

    manifest = api.corpus_build(name, file, session.settings(), _Told(session.diagnostics))
    if session.json:
        output.document(manifest)
        return
    documents, passages = manifest.documents, manifest.passages
    output.text(f"{name}  {count(documents, 'document')}, {count(passages, 'passage')}")
    session.diagnostics.hint(f"To search in it: --search corpus:{name}")


class _Told:
    """Tells how far a build is: at once, then every few seconds."""

    def __init__(self, diagnostics: Diagnostics) -> None:
        self._diagnostics = diagnostics
        self._next = 0.0

    def __call__(self, documents: int, passages: int) -> None:
        now = time.monotonic()
        if now >= self._next:
            self._next = now + PROGRESS_INTERVAL_S
            self._diagnostics.note(f"{documents:,} documents, {passages:,} passages indexed")
