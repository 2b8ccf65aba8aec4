"""The record of evidence, made from settings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from offline_judge.errors import (
    BackendError,
    MissingError,
    SettingsError,
    StorageError,
    UsageError,
    WeightsError,
)
from offline_judge.protocols import SearchProvider
from offline_judge.wiring.embedders import embedder_space, open_embedder

if TYPE_CHECKING:
    from offline_judge.protocols import Embedder, RunListener
    from offline_judge.retrieval.evidence.chroma import ChromaIndex
    from offline_judge.retrieval.evidence.fused import RecordSearch
    from offline_judge.retrieval.evidence.model import Scope
    from offline_judge.retrieval.evidence.record import Record
    from offline_judge.retrieval.search.memory import MemorySearch
    from offline_judge.settings import Settings

MEMORY = "memory"
_ON_THIS_MACHINE = frozenset({"corpus", MEMORY})
Tell = Callable[[str], None]


def check_offline(settings: Settings) -> None:
    """Refuse a provider that needs the network where nothing may leave this machine.

    Raises:
        UsageError: the settings ask for both.
    """
    kind = settings.search.partition(":")[0]
    if settings.offline and kind not in _ON_THIS_MACHINE:
        raise UsageError(
            f"`--search {settings.search}` needs the network, and `--offline` forbids it.",
            remedy=f"Search in what is here: --search {MEMORY}, or --search corpus:NAME.",
        )


def open_record(settings: Settings) -> Record:
    """The record of this installation; made where absent.

    Raises:
        StorageError: it cannot be opened, is damaged, foreign, or of a newer program.
    """
    from offline_judge.retrieval.evidence.record import Record

    return Record(settings.evidence_path)


class Words:
    """What the record has to say to whoever runs a search.

    Args:
        warn: Takes, before the run begins, what a reader of its results must know.
        listener: Told all the rest.
    """

    def __init__(self, warn: Tell, listener: RunListener) -> None:
        self.warn = warn
        self._listener = listener

    def progress(self, sentence: str) -> None:
        """How far embedding is, and why it goes no further."""
        self._listener.phase("evidence", sentence)

    def fault(self, sentence: str) -> None:
        """The record cannot be used; under a name of its own it is not taken for more progress."""
        self._listener.phase("evidence record", sentence)


def remembering(provider: SearchProvider, settings: Settings, words: Words) -> SearchProvider:
    """The provider with the record before it, and with `offline` the memory beside it.

    A record that cannot be used is warned of, and the provider is searched without it: what it
    finds does not depend on what is recorded.

    Args:
        provider: What is searched; closed with what is returned, and here where that fails.
        settings: Where the record is, and what makes a search the same.
        words: Takes sentences for people, in the thread that searches.

    Raises:
        SettingsError: a setting of the record is out of range.
    """
    try:
        return _remembering(provider, settings, words)
    except StorageError as error:
        words.warn(f"Nothing is recorded, and nothing found before is used. {error}")
        return provider
    except BaseException:
        provider.close()
        raise


def _remembering(provider: SearchProvider, settings: Settings, words: Words) -> SearchProvider:
    from offline_judge.retrieval.evidence.behind import EmbeddingBehind
    from offline_judge.retrieval.evidence.offline import OfflineSearch
    from offline_judge.retrieval.evidence.remember import RememberingSearch, Voices

    memory = None
    if settings.offline:
        memory = open_memory(settings, words, not_sources=(_source(provider),))
    try:
        record = open_record(settings)
    except BaseException:
        if memory is not None:
            memory.close()
        raise
    # One thread, which then really is the one that stands back.
    alone = replace(settings, threads=1)
    behind = EmbeddingBehind(
        settings.evidence_path, lambda: embedder_space(alone), lambda: _embedder_if_here(alone)
    )
    # What a corpus finds must not depend on what somebody searched in other letters before, and
    # other letters do find other passages: E5 puts a question without its capitals some .05 of
    # cosine away, and to the word index the two forms of sigma are two letters.
    scope = replace(search_scope(settings), as_written=provider.name in _ON_THIS_MACHINE)
    voices = Voices(words.progress, words.fault)
    remembered = RememberingSearch(provider, record, scope, behind, voices)
    return remembered if memory is None else OfflineSearch(remembered, memory, words.fault)


def open_memory(
    settings: Settings, words: Words, *, not_sources: tuple[str, ...] = ()
) -> MemorySearch:
    """Search in what was found before; by words only where there is no embedder.

    Raises:
        StorageError: the record cannot be used.
        SettingsError: a setting of the record is out of range.
    """
    from offline_judge.retrieval.search.memory import MemorySearch

    if settings.memory_similarity > 1:
        raise SettingsError(
            f"`memory_similarity` is at most 1, not {settings.memory_similarity}",
            where=settings.origins.get("memory_similarity", ""),
        )
    record = open_record(settings)
    embedder = embedder_or_words(settings, words.warn)
    return MemorySearch(
        record,
        embedder,
        search_scope(settings),
        similarity=settings.memory_similarity or None,
        not_sources=not_sources,
        open_nearest=lambda: large_index(record, embedder, settings, words.progress),
    )


def open_record_search(record: Record, settings: Settings, tell: Tell) -> RecordSearch:
    """Fused search over the record, and the embedder with it.

    Raises:
        StorageError: the record cannot be used.
    """
    from offline_judge.retrieval.evidence.fused import RecordSearch

    embedder = embedder_or_words(settings, tell)
    return RecordSearch(record, embedder, large_index(record, embedder, settings, tell))


def embedder_or_words(settings: Settings, tell: Tell) -> Embedder | None:
    """The embedder of the settings; None, and a sentence with the remedy, where it is not here.

    Raises:
        UsageError: the settings name no embedder.
    """
    try:
        return open_embedder(settings)
    except (MissingError, WeightsError, BackendError) as error:
        tell(f"Recorded passages are searched by words only. {error}")
        return None


def _embedder_if_here(settings: Settings) -> Embedder | None:
    """The embedder of the settings; None where it is not installed, which no run has to hear of."""
    try:
        return open_embedder(settings)
    except MissingError:
        return None


def chroma_index(record: Record, embedder: Embedder, settings: Settings, tell: Tell) -> ChromaIndex:
    """Chroma over the record's vectors of an embedder, not opened yet."""
    from offline_judge.retrieval.evidence.chroma import ChromaIndex, Events
    from offline_judge.retrieval.evidence.vectors import Space, VectorTable

    table = VectorTable(record, Space(embedder.id, embedder.dimension))
    return ChromaIndex(table, settings.evidence_path / "chroma", Events(told=tell))


def large_index(
    record: Record, embedder: Embedder | None, settings: Settings, tell: Tell
) -> ChromaIndex | None:
    """Chroma, opened, tested and filled, where there are more vectors than are searched one by one.

    None where there are fewer, or it cannot be used, which is told.

    Raises:
        StorageError: the record cannot be read.
    """
    from offline_judge.retrieval.evidence.chroma import FILL_FROM
    from offline_judge.retrieval.evidence.vectors import EXACT_UP_TO, Space, VectorTable

    if embedder is None:
        return None
    table = VectorTable(record, Space(embedder.id, embedder.dimension))
    if table.count() <= EXACT_UP_TO:
        return None
    index = chroma_index(record, embedder, settings, tell)
    try:
        if not index.open():
            return None
        waiting = index.waiting()
        if waiting >= FILL_FROM:
            tell(f"{waiting:,} vectors are put into the vector index first.")
            index.fill()
    except StorageError as error:
        index.close()
        tell(f"{error} Exact search in SQLite answers instead.")
        return None
    except BaseException:
        index.close()
        raise
    return index


def search_scope(settings: Settings) -> Scope:
    """What, beside its words, makes a search the same."""
    from offline_judge.retrieval.evidence.model import Scope

    return Scope(locale=settings.locale, max_age_days=settings.max_age_days)


def _source(provider: SearchProvider) -> str:
    """What the passages of a corpus say they come from."""
    return f"{provider.name}:{provider.identity().get('name', '')}"
