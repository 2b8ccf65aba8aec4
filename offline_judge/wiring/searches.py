"""Search providers and the corpora behind them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from offline_judge.errors import UsageError
from offline_judge.protocols import RunListener, SearchProvider
from offline_judge.registry import PROVIDERS
from offline_judge.retrieval.corpus.factbook import factbook_documents, factbook_hash
from offline_judge.retrieval.corpus.store import CorpusManifest
from offline_judge.settings import Settings

DEFAULT_CORPUS = "factbook"


def open_search(settings: Settings, listener: RunListener) -> SearchProvider:
    """The search provider of the settings, `corpus` or `corpus:NAME`.

    Raises:
        UsageError: no such provider.
        MissingError: the named corpus does not exist.
    """
    kind, named, corpus = settings.search.partition(":")
    provider = PROVIDERS.load(kind)
    if named and not corpus:
        raise UsageError(
            f"`--search {settings.search}` names no corpus.",
            remedy="Say --search corpus:NAME, or --search corpus for the shipped one.",
        )
    if not corpus or corpus == DEFAULT_CORPUS:
        corpus = DEFAULT_CORPUS
        ensure_default_corpus(settings, listener)
    opened: SearchProvider = provider(corpus, settings.corpora_path)
    return opened


def ensure_default_corpus(settings: Settings, listener: RunListener) -> None:
    """Build the default corpus where it is absent, damaged or made from other data."""

    def progress(documents: int, passages: int) -> None:
        listener.phase("corpus", f"{documents:,} documents, {passages:,} passages")

    listener.phase("corpus", f"looking at `{DEFAULT_CORPUS}`")
    make_corpus(DEFAULT_CORPUS, None, settings, progress)


def make_corpus(
    name: str,
    file: Path | None,
    settings: Settings,
    progress: Callable[[int, int], None] | None = None,
) -> CorpusManifest:
    """Build a corpus from a file, or the default one without; see `api.corpus_build`."""
    from offline_judge.retrieval.corpus.build import build_corpus
    from offline_judge.retrieval.corpus.documents import file_hash, read_documents

    if file is not None and name == DEFAULT_CORPUS:
        raise UsageError(
            f"`{name}` is the corpus that comes with the program.",
            remedy="Give your own another name, and search it with --search corpus:NAME.",
        )
    if file is not None:
        documents, source = read_documents(file), file_hash(file)
    elif name == DEFAULT_CORPUS:
        documents, source = factbook_documents(), factbook_hash()
    else:
        raise UsageError(
            f"The corpus `{name}` needs a file of documents.",
            remedy=f"offline-judge corpus build {name} FILE",
        )
    return build_corpus(name, documents, settings.corpora_path, progress, source=source)
