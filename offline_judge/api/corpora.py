"""Corpora: what can be searched on this machine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from offline_judge.domain.corpus import BuildListener, CorpusState

if TYPE_CHECKING:
    from offline_judge.settings import Settings


def corpus_build(
    name: str,
    paths: Path | Sequence[Path] | None,
    settings: Settings,
    listener: BuildListener | None = None,
    *,
    vectors: bool = True,
    skip_bad: bool = False,
) -> CorpusState:
    """Make documents searchable as corpus `name`, or bring it up to date.

    It can be searched by words as soon as it is indexed; then its vectors are made, where the
    embedder of the settings is here. Both do only what is not done yet, and may be interrupted at
    any point.

    Args:
        name: Letters, digits, dots, dashes, underscores.
        paths: Files and folders: JSON Lines with id, title, text; Markdown, text, HTML, PDF. None
            takes those of the last build, or builds the default corpus under its own name.
        settings: Where corpora are, and what embeds.
        listener: Told how far it is, and what is not as the user will have wanted it.
        vectors: Make vectors too.
        skip_bad: Leave out broken files and bad rows instead of refusing them.

    Raises:
        UsageError: a bad name, no path for a corpus that needs one, or another process builds it.
        DataError: a file cannot be used, or nothing is left to index.
        MissingDependencyError: a package that reads one of the files is not installed.
        StorageError: the corpus cannot be written; the old one and all vectors made so far stay.
    """
    from offline_judge import wiring

    given = [paths] if isinstance(paths, Path) else list(paths or ())
    wiring.make_corpus(name, given, settings, listener, skip_bad=skip_bad)
    if vectors:
        wiring.embed_if_possible(name, settings, listener)
    return wiring.corpus_state(name, settings)


def corpus_embed(
    name: str, settings: Settings, listener: BuildListener | None = None
) -> CorpusState:
    """Make the vectors that a corpus lacks; what has one is not embedded again.

    Raises:
        MissingError: there is no such corpus, or no embedder.
        UsageError: another process is building it.
        BackendError: the embedder failed; what is embedded stays.
        StorageError: they cannot be written; what is embedded stays.
    """
    from offline_judge import wiring

    wiring.embed_corpus(name, settings, listener)
    return wiring.corpus_state(name, settings)


def corpus_list(settings: Settings) -> list[CorpusState]:
    """All corpora on this machine, by name."""
    from offline_judge import wiring

    return wiring.corpus_states(settings)


def corpus_rm(name: str, settings: Settings) -> bool:
    """Delete a corpus; returns whether it comes back at its next use, as the default one does.

    Raises:
        MissingError: there is no such corpus.
        UsageError: another process is building it.
    """
    from offline_judge import wiring

    wiring.delete_corpus(name, settings)
    return name == wiring.DEFAULT_CORPUS
