"""Search in a corpus on this machine."""

from __future__ import annotations

import asyncio
import re
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from offline_judge.domain.evidence import SearchHit
from offline_judge.errors import OfflineJudgeError, SearchError
from offline_judge.protocols import Embedder, SearchProvider
from offline_judge.retrieval.corpus import analysis
from offline_judge.retrieval.corpus.index import open_index, passage_of, stored_fields
from offline_judge.retrieval.corpus.store import (
    CorpusManifest,
    check_files,
    corpus_path,
    damaged,
    read_manifest,
)
from offline_judge.retrieval.corpus.vectors import Vectors, open_vectors
from offline_judge.retrieval.search.fusion import WORD_WEIGHT, fused

if TYPE_CHECKING:
    import tantivy

# Scores that differ less are one score: their last digits depend on how the index was merged, and
# on the order in which a processor adds.
_DECIMALS = 4
_OPEN_ATTEMPTS = 3
# Passages whose score by words counts in a fused search.
_WORD_DEPTH = 1000
# Equal scores are put in the order of their ids up to this many, and beyond in that of the index.
_MOST_TIES = 20_000
_WORD = re.compile(r"\w")

_Ranked = list[tuple[float, "tantivy.DocAddress"]]


@dataclass(frozen=True)
class _Opened:
    manifest: CorpusManifest
    searcher: tantivy.Searcher
    analyzer: tantivy.TextAnalyzer
    vectors: Vectors | None


class CorpusSearch:
    """Search in one corpus by words (BM25), or fused by words and vectors; opened at first use.

    A corpus that is built anew, embedded or removed meanwhile does not change the results of this
    object, and neither does it ever change from one way of searching to the other.

    Args:
        name: The corpus.
        corpora_path: Folder of all corpora.
        embedder: Embeds queries in the space of the corpus's vectors; None searches by words
            only. It is closed with the search.

    Raises:
        UsageError: the name cannot name a corpus.
    """

    name: ClassVar[str] = "corpus"

    def __init__(self, name: str, corpora_path: Path, embedder: Embedder | None = None) -> None:
        self._folder = corpus_path(name, corpora_path)
        self._corpus = name
        self._source = f"corpus:{name}"
        self._corpora_path = corpora_path
        self._embedder = embedder
        self._opened: _Opened | None = None
        self._lock = threading.Lock()
        self._embedding = threading.Lock()

    def identity(self) -> dict[str, Any]:
        """Provider, corpus, hash of its content, number of passages, and the way of searching.

        Raises:
            MissingError: there is no such corpus.
            SearchError: it is damaged, or has no vectors of the embedder.
        """
        manifest = self._open().manifest
        identity = {
            "provider": self.name,
            "name": self._corpus,
            "content": manifest.content,
            "passages": manifest.passages,
            "mode": "words",
        }
        if manifest.history:
            identity["history"] = manifest.history
        if self._embedder is not None:
            fusion = {"embedder": self._embedder.id, "word_weight": WORD_WEIGHT}
            identity |= {"mode": "words and vectors", **fusion}
        return identity

    async def search(self, query: str, *, limit: int, offset: int = 0) -> tuple[SearchHit, ...]:
        """The hits of ranks `offset + 1` to `offset + limit`, by score, then by passage id.

        A query without a word finds nothing.

        Raises:
            MissingError: there is no such corpus.
            SearchError: the index or the vectors are damaged, or the embedder failed.
        """
        if limit < 1 or offset < 0:
            raise ValueError(f"limit {limit} and offset {offset} ask for no ranks")
        return await asyncio.to_thread(self._search, query, limit, offset)

    def close(self) -> None:
        """Let go of index and embedder; a search by words opens the index again."""
        with self._lock:
            self._opened = None
        if self._embedder is not None:
            self._embedder.close()

    def _open(self) -> _Opened:
        with self._lock:
            for attempt in range(_OPEN_ATTEMPTS):
                if self._opened is None:
                    try:
                        self._opened = self._load()
                    except SearchError:
                        # The index may have been replaced between its manifest and its files.
                        if attempt == _OPEN_ATTEMPTS - 1:
                            raise
            assert self._opened is not None
            return self._opened

    def _load(self) -> _Opened:
        manifest = read_manifest(self._corpus, self._corpora_path)
        if manifest.index_schema != analysis.SCHEMA:
            raise damaged(self._corpus, "another version of this program built it")
        folder = self._folder / manifest.index
        check_files(self._corpus, manifest.files, folder)
        try:
            searcher = open_index(folder).searcher()
        except (ValueError, OSError) as error:
            raise damaged(self._corpus, str(error)) from error
        if searcher.num_docs != manifest.passages:
            raise damaged(self._corpus, f"{searcher.num_docs} passages, not {manifest.passages}")
        vectors = None
        if self._embedder is not None:
            vectors = open_vectors(self._folder, manifest, self._embedder.id)
        return _Opened(manifest, searcher, analysis.english(), vectors)

    def _search(self, query: str, limit: int, offset: int) -> tuple[SearchHit, ...]:
        opened = self._open()
        if not _WORD.search(query):
            return ()
        try:
            if opened.vectors is None:
                ranked = self._by_words(opened, query, offset + limit)
            else:
                ranked = self._fused(opened, opened.vectors, query, offset + limit)
            ordered = self._ordered(opened, ranked)
            return tuple(
                SearchHit(rank=rank, score=score, passage=passage_of(fields, self._source))
                for rank, (score, fields) in enumerate(ordered, 1)
                if offset < rank <= offset + limit
            )
        except (ValueError, OSError, KeyError, TypeError) as error:
            raise damaged(self._corpus, str(error)) from error

    def _by_words(self, opened: _Opened, query: str, count: int) -> _Ranked:
        """The best `count` passages by BM25, and those of the last one's score."""
        terms = analysis.build_query(query, opened.analyzer)
        if terms is None:
            return []
        total = opened.manifest.passages
        fetch = min(count + 1, total)
        while True:
            hits = opened.searcher.search(terms, limit=fetch, count=False).hits
            scores = [round(float(score), _DECIMALS) for score, _ in hits]
            if len(hits) <= count or scores[-1] < scores[count - 1] or fetch == total:
                break
            if fetch > count + _MOST_TIES:
                break
            fetch = min(2 * fetch, total)
        return [(score, address) for score, (_, address) in zip(scores, hits, strict=True)]

    def _fused(self, opened: _Opened, vectors: Vectors, query: str, count: int) -> _Ranked:
        import tantivy

        assert self._embedder is not None
        words = self._by_words(opened, query, min(_WORD_DEPTH, opened.manifest.passages))
        try:
            with self._embedding:
                direction = self._embedder.embed([query], kind="query")[0]
        except OfflineJudgeError as error:
            # Falling back to words would put two ways of searching into one run.
            raise SearchError(
                f"The query could not be embedded: {error.message}", remedy=error.remedy
            ) from error
        hits = [((a.segment_ord << 32) | a.doc, score) for score, a in words]
        return [
            (round(score, _DECIMALS), tantivy.DocAddress(place >> 32, place & 0xFFFFFFFF))
            for place, score in fused(vectors, direction, hits, count)[: count + _MOST_TIES]
        ]

    def _ordered(self, opened: _Opened, ranked: _Ranked) -> list[tuple[float, dict[str, Any]]]:
        """What is stored of the passages, by score, and by id where scores are equal."""
        found = [(score, stored_fields(opened.searcher, address)) for score, address in ranked]
        return sorted(found, key=lambda item: (-item[0], item[1]["id"]))


PROVIDER: type[SearchProvider] = CorpusSearch
