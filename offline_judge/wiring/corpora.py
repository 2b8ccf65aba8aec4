"""Corpora by name: building, embedding, listing and opening them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from offline_judge.domain.corpus import BuildListener, CorpusState
from offline_judge.errors import (
    BackendError,
    MissingError,
    SearchError,
    UsageError,
    WeightsError,
)
from offline_judge.protocols import RunListener, SearchProvider
from offline_judge.retrieval.corpus.factbook import factbook_documents, factbook_hash
from offline_judge.retrieval.corpus.store import (
    CorpusManifest,
    corpus_path,
    list_corpora,
    read_manifest,
    remove_corpus,
)
from offline_judge.retrieval.search.corpus import CorpusSearch
from offline_judge.settings import Settings
from offline_judge.wiring.embedders import NO_EMBEDDER, open_embedder

DEFAULT_CORPUS = "factbook"

# Why an embedder may not be had; a search then goes by words.
_NO_VECTORS = (MissingError, WeightsError, BackendError)


def make_corpus(
    name: str,
    paths: Sequence[Path],
    settings: Settings,
    listener: BuildListener | None = None,
    *,
    skip_bad: bool = False,
) -> CorpusManifest:
    """Build a corpus for searching by words; see `api.corpus_build`."""
    from offline_judge.retrieval.corpus.build import Source, build_corpus
    from offline_judge.retrieval.corpus.sources import FileSource

    corpora, indexed = settings.corpora_path, listener.indexed if listener else None
    if name == DEFAULT_CORPUS:
        if paths:
            raise UsageError(
                f"`{name}` is the corpus that comes with the program.",
                remedy="Give your own another name, and search it with --search corpus:NAME.",
            )
        source = Source(factbook_hash())
        return build_corpus(name, factbook_documents(), corpora, indexed, source=source)
    before = _paths_before(name, settings)
    if not paths and not before:
        raise UsageError(
            f"The corpus `{name}` needs a file or folder of documents.",
            remedy=f"offline-judge corpus build {name} FILE",
        )
    with FileSource(paths or [Path(path) for path in before], skip_bad=skip_bad) as files:
        if listener and before and before != files.source.paths:
            listener.warn(
                f"`{name}` was built from {', '.join(before)}; "
                f"it is replaced by {', '.join(files.source.paths)}"
            )
        return build_corpus(name, files, corpora, indexed, source=files.source)


def embed_corpus(name: str, settings: Settings, listener: BuildListener | None = None) -> None:
    """Give a corpus the vectors that it lacks.

    Raises:
        OfflineJudgeError: as `api.corpus_embed`.
    """
    from offline_judge.retrieval.corpus import embedding

    read_manifest(name, settings.corpora_path)
    embedder = open_embedder(settings)
    if embedder is None:
        raise UsageError(
            "The setting `embedder` is `none`, so there is nothing to embed with.",
            remedy="Name one: `offline-judge models list` shows those of the role embedder.",
        )
    try:
        embedding.embed_corpus(
            name, settings.corpora_path, embedder, listener.embedded if listener else None
        )
    finally:
        embedder.close()


def embed_if_possible(name: str, settings: Settings, listener: BuildListener | None) -> None:
    """Give a corpus its vectors, or say why it has none; it can be searched by words anyway."""
    if settings.embedder == NO_EMBEDDER:
        return
    try:
        embed_corpus(name, settings, listener)
    except _NO_VECTORS as error:
        if listener:
            listener.warn(f"`{name}` is searched by words only. {error}")


def corpus_states(settings: Settings) -> list[CorpusState]:
    """All corpora here, by name; those that are damaged say so."""
    return [corpus_state(name, settings) for name in list_corpora(settings.corpora_path)]


def corpus_state(name: str, settings: Settings) -> CorpusState:
    """How far a corpus is; its index is not read.

    Raises:
        MissingError: there is no such corpus.
    """
    from offline_judge.retrieval.corpus.embedding import STORE
    from offline_judge.retrieval.corpus.vector_store import embedded_counts
    from offline_judge.retrieval.corpus.vectors import read_vector_manifest

    folder = corpus_path(name, settings.corpora_path)
    try:
        manifest = read_manifest(name, settings.corpora_path)
    except SearchError as error:
        return CorpusState(name, size=_size(folder), problem=error.message)
    vectors = read_vector_manifest(folder, manifest)
    counts = embedded_counts(folder / STORE)
    embedder = vectors.embedder if vectors else max(counts, key=counts.__getitem__, default="")
    return CorpusState(
        name=name,
        documents=manifest.documents,
        passages=manifest.passages,
        embedded=manifest.passages if vectors else min(counts.get(embedder, 0), manifest.passages),
        complete=vectors is not None,
        embedder=embedder,
        size=_size(folder),
        paths=manifest.paths,
        left_out=manifest.left_out,
    )


def delete_corpus(name: str, settings: Settings) -> None:
    """Delete a corpus with its vectors.

    Raises:
        MissingError: there is no such corpus.
        UsageError: another process is building it.
    """
    remove_corpus(name, settings.corpora_path)


def open_corpus(
    name: str,
    settings: Settings,
    listener: RunListener,
    *,
    warn: Callable[[str], None],
) -> SearchProvider:
    """Search in a corpus: by words and vectors where it has all its vectors, else by words.

    Args:
        name: The corpus.
        settings: Where it is, and with what queries are embedded.
        listener: Told where it goes by words because there are no vectors yet.
        warn: Told where vectors are there but cannot be used.

    Raises:
        MissingError: there is no such corpus.
        SearchError: it is damaged.
        UsageError: the settings name no embedder.
    """
    from offline_judge.retrieval.corpus.vectors import read_vector_manifest

    path = settings.corpora_path
    words = CorpusSearch(name, path)
    if settings.embedder == NO_EMBEDDER:
        return words
    manifest = read_manifest(name, path)
    if read_vector_manifest(corpus_path(name, path), manifest) is None:
        how = f"offline-judge corpus embed {name}"
        listener.phase("search", f"`{name}` by words only; for vectors too: {how}")
        return words
    try:
        return _fused(name, settings)
    except (*_NO_VECTORS, SearchError) as error:
        # What is wrong with the index itself is wrong with a search by words too.
        words.identity()
        warn(f"`{name}` is searched by words only. {error}")
        return words


def _fused(name: str, settings: Settings) -> SearchProvider:
    embedder = open_embedder(settings)
    assert embedder is not None
    search = CorpusSearch(name, settings.corpora_path, embedder)
    try:
        search.identity()
        embedder.embed(["Does it work?"], kind="query")
    except BaseException:
        search.close()
        raise
    return search


def _paths_before(name: str, settings: Settings) -> tuple[str, ...]:
    with suppress(MissingError, SearchError):
        return read_manifest(name, settings.corpora_path).paths
    return ()


def _size(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        with suppress(OSError):
            total += path.stat().st_size if path.is_file() else 0
    return total
