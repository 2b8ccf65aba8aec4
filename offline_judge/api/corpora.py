"""Corpora: what can be searched on this machine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from offline_judge.retrieval.corpus.store import CorpusManifest
    from offline_judge.settings import Settings


def corpus_build(
    name: str,
    file: Path | None,
    settings: Settings,
    progress: Callable[[int, int], None] | None = None,
) -> CorpusManifest:
    """Make documents searchable as corpus `name`; does nothing where they have not changed.

    Args:
        name: Letters, digits, dots, dashes, underscores.
        file: JSONL with id, title, text; None builds the default corpus under its own name.
        settings: Where corpora are.
        progress: Told the documents and passages indexed so far.

    Raises:
        UsageError: a bad name, or no file for a corpus that needs one.
        DataError: the file holds bad rows.
        StorageError: the corpus cannot be written.
    """
    from offline_judge import wiring

    return wiring.make_corpus(name, file, settings, progress)
