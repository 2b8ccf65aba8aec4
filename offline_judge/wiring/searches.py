"""Search providers by their names in the settings."""

from __future__ import annotations

from collections.abc import Callable

from offline_judge.errors import UsageError
from offline_judge.protocols import RunListener, SearchProvider
from offline_judge.registry import PROVIDERS
from offline_judge.settings import Settings
from offline_judge.wiring.corpora import DEFAULT_CORPUS, make_corpus, open_corpus
from offline_judge.wiring.evidence import MEMORY, Words, check_offline, open_memory, remembering

_CORPUS = "corpus"


def open_search(
    settings: Settings,
    listener: RunListener,
    *,
    warn: Callable[[str], None] | None = None,
) -> SearchProvider:
    """The search provider of the settings, with the record of evidence before it.

    Args:
        settings: Which one, and where corpora are.
        listener: Told what is built.
        warn: Takes a sentence that a reader of the results must know; without it the listener is
            told.

    Raises:
        UsageError: no such provider, or one that needs the network while it is forbidden.
        MissingError: the named corpus does not exist.
        StorageError: memory is to be searched, and the record of evidence cannot be used.
    """

    def told(text: str) -> None:
        listener.phase("search", text)

    kind, _, name = settings.search.partition(":")
    PROVIDERS.placeholder(kind)
    check_offline(settings)
    provider = PROVIDERS.load(kind)
    words = Words(warn or told, listener)
    if kind == MEMORY:
        return open_memory(settings, words)
    if kind != _CORPUS:
        opened: SearchProvider = provider(name, settings.corpora_path)
    else:
        opened = _open_corpus(settings, listener, warn or told)
    return remembering(opened, settings, words)


def _open_corpus(
    settings: Settings, listener: RunListener, warn: Callable[[str], None]
) -> SearchProvider:
    _, named, corpus = settings.search.partition(":")
    if named and not corpus:
        raise UsageError(
            f"`--search {settings.search}` names no corpus.",
            remedy="Say --search corpus:NAME, or --search corpus for the shipped one.",
        )
    if not corpus or corpus == DEFAULT_CORPUS:
        corpus = DEFAULT_CORPUS
        ensure_default_corpus(settings, listener)
    return open_corpus(corpus, settings, listener, warn=warn)


class _Phases:
    """Tells the listener of a run how far the default corpus is."""

    def __init__(self, listener: RunListener) -> None:
        self._listener = listener

    def indexed(self, documents: int, passages: int) -> None:
        self._listener.phase("corpus", f"{documents:,} documents, {passages:,} passages")

    def embedded(self, done: int, total: int) -> None:
        self._listener.phase("corpus", f"{done:,} of {total:,} texts embedded")

    def note(self, text: str) -> None:
        self._listener.phase("corpus", text)

    warn = note


def ensure_default_corpus(settings: Settings, listener: RunListener) -> None:
    """Build the default corpus where it is absent, damaged or made from other data.

    It is built for searching by words, which takes seconds; a run never waits for vectors.
    """
    listener.phase("corpus", f"looking at `{DEFAULT_CORPUS}`")
    make_corpus(DEFAULT_CORPUS, (), settings, _Phases(listener))
