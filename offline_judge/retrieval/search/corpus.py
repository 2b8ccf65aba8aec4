"""Search in a corpus on this machine."""

from __future__ import annotations

import asyncio
import json
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from offline_judge.domain.evidence import Passage, SearchHit
from offline_judge.errors import SearchError
from offline_judge.protocols import SearchProvider
from offline_judge.retrieval.corpus import analysis
from offline_judge.retrieval.corpus.store import (
    CorpusManifest,
    check_files,
    corpus_path,
    damaged,
    read_manifest,
)

if TYPE_CHECKING:
    import tantivy

# Scores that differ less are one score: their last digits depend on how the index was merged.
_DECIMALS = 4
_OPEN_ATTEMPTS = 3


@dataclass(frozen=True)
class _Opened:
    manifest: CorpusManifest
    searcher: tantivy.Searcher
    analyzer: tantivy.TextAnalyzer


class CorpusSearch:
    """Lexical search (BM25) in one corpus; opened at first use, then fixed.

    A corpus that is built anew or removed meanwhile does not change the results of this object.

    Args:
        name: The corpus.
        corpora_path: Folder of all corpora.

    Raises:
        UsageError: the name cannot name a corpus.
    """

    name: ClassVar[str] = "corpus"

    def __init__(self, name: str, corpora_path: Path) -> None:
        self._folder = corpus_path(name, corpora_path)
        self._corpus = name
        self._corpora_path = corpora_path
        self._opened: _Opened | None = None
        self._lock = threading.Lock()

    def identity(self) -> dict[str, Any]:
        """Provider, corpus, hash of its content and number of passages.

        Raises:
            MissingError: there is no such corpus.
            SearchError: it is damaged.
        """
        manifest = self._open().manifest
        return {
            "provider": self.name,
            "name": self._corpus,
            "content": manifest.content,
            "passages": manifest.passages,
        }

    async def search(self, query: str, *, limit: int, offset: int = 0) -> tuple[SearchHit, ...]:
        """The hits of ranks `offset + 1` to `offset + limit`, by score, then by passage id.

        A query without a word finds nothing.

        Raises:
            MissingError: there is no such corpus.
            SearchError: the index is damaged.
        """
        if limit < 1 or offset < 0:
            raise ValueError(f"limit {limit} and offset {offset} ask for no ranks")
        return await asyncio.to_thread(self._search, query, limit, offset)

    def close(self) -> None:
        """Let go of the index; a later search opens it again."""
        with self._lock:
            self._opened = None

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
        import tantivy

        manifest = read_manifest(self._corpus, self._corpora_path)
        if manifest.index_schema != analysis.SCHEMA:
            raise damaged(self._corpus, "another version of this program built it")
        folder = self._folder / manifest.index
        check_files(manifest, folder)
        try:
            index = tantivy.Index.open(str(folder))
            analysis.register(index)
            # Nobody writes to this folder again, so there is nothing to watch for.
            index.config_reader(reload_policy="manual")
            searcher = index.searcher()
        except (ValueError, OSError) as error:
            raise damaged(self._corpus, str(error)) from error
        if searcher.num_docs != manifest.passages:
            raise damaged(self._corpus, f"{searcher.num_docs} passages, not {manifest.passages}")
        return _Opened(manifest, searcher, analysis.english())

    def _search(self, query: str, limit: int, offset: int) -> tuple[SearchHit, ...]:
        opened = self._open()
        terms = analysis.build_query(query, opened.analyzer)
        if terms is None:
            return ()
        try:
            ordered = self._ranked(opened, terms, offset + limit)
        except (ValueError, OSError, KeyError, TypeError) as error:
            raise damaged(self._corpus, str(error)) from error
        return tuple(
            SearchHit(rank=rank, score=score, passage=passage)
            for rank, (score, passage) in enumerate(ordered[offset : offset + limit], offset + 1)
        )

    def _ranked(
        self, opened: _Opened, terms: tantivy.Query, count: int
    ) -> list[tuple[float, Passage]]:
        """The best `count` passages and those of the last one's score, in their final order."""
        total = opened.manifest.passages
        fetch = min(count + 1, total)
        while True:
            hits = opened.searcher.search(terms, limit=fetch, count=False).hits
            scores = [round(float(score), _DECIMALS) for score, _ in hits]
            if len(hits) <= count or scores[-1] < scores[count - 1] or fetch == total:
                break
            fetch = min(2 * fetch, total)
        found = [
            (score, self._passage(opened.searcher, address))
            for score, (_, address) in zip(scores, hits, strict=True)
        ]
        return sorted(found, key=lambda item: (-item[0], item[1].id))

    def _passage(self, searcher: tantivy.Searcher, address: tantivy.DocAddress) -> Passage:
        stored = json.loads(searcher.doc(address)[analysis.STORED][0])
        return Passage(
            id=stored["id"],
            document_id=stored["document_id"],
            title=stored["title"],
            text=stored["text"],
            start=stored["start"],
            end=stored["end"],
            source=f"corpus:{self._corpus}",
        )


PROVIDER: type[SearchProvider] = CorpusSearch
