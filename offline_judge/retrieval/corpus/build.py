"""Building a corpus: documents in, a searchable index out, swapped in as a whole."""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

from offline_judge.domain.evidence import Passage
from offline_judge.errors import DataError, SearchError, StorageError
from offline_judge.retrieval.corpus import analysis
from offline_judge.retrieval.corpus.documents import Document, Unread
from offline_judge.retrieval.corpus.index import IndexWriter, rewrite
from offline_judge.retrieval.corpus.passages import cut_document
from offline_judge.retrieval.corpus.store import (
    INDEX_PREFIX,
    MANIFEST,
    CorpusManifest,
    build_lock,
    check_files,
    checksums,
    corpus_path,
    replace_file,
)
from offline_judge.retrieval.corpus.vectors import sweep_vectors

BUILDER = 2  # goes up when the same documents are cut or stored differently
PROGRESS_EVERY = 500
RECORDS = "documents.jsonl"
# Statistics that count passages which are gone are borne up to this share of all passages.
STALE_SHARE = 0.1

Progress = Callable[[int, int], None]
Cut = Callable[[Document], Iterable[Passage]]


@dataclass(frozen=True)
class Source:
    """Where documents come from.

    Attributes:
        hash: Identity of all of them; where the last build had the same, nothing is done. Empty
            where it is not known.
        paths: Files and folders, for people and for building again.
        left_out: Filled while the documents are read: what is not among them, and why.
    """

    hash: str = ""
    paths: tuple[str, ...] = ()
    left_out: list[str] = field(default_factory=list)


def build_corpus(
    name: str,
    documents: Iterable[Document | Unread],
    corpora_path: Path,
    progress: Progress | None = None,
    *,
    source: Source | None = None,
    cut: Cut = cut_document,
) -> CorpusManifest:
    """Build a corpus, or bring it up to date: only documents that changed are cut and indexed.

    Documents are streamed: memory holds the index writer's buffer and a line for each document.
    The old corpus stays in use until the new one is complete on disk.

    Args:
        name: Letters, digits, dots, dashes, underscores.
        documents: Not touched where `source` says that nothing has changed.
        corpora_path: Folder of all corpora.
        progress: Told the documents and passages indexed so far, and once at the end.
        source: Where the documents come from.
        cut: How a document becomes passages.

    Raises:
        UsageError: a bad name, or another process is building this corpus.
        DataError: no passages, two documents of one id, or text that is no Unicode.
        StorageError: the disk is full or cannot be written.
    """
    folder = corpus_path(name, corpora_path)
    source = source or Source()
    builder = f"{BUILDER} {cut.__name__}"
    if source.hash and (base := _intact(folder, builder)) and base.source == source.hash:
        return base
    with build_lock(name, corpora_path):
        try:
            folder.mkdir(exist_ok=True)
            sweep(folder)
            base = _intact(folder, builder)
            return _Build(name, folder, base, source, builder).run(documents, cut, progress)
        except OSError as error:
            raise StorageError(f"Cannot write the corpus: {error}", where=str(folder)) from error


def sweep(folder: Path) -> None:
    """Delete what interrupted builds left, keeping the index in use and its vectors."""
    manifest = None
    with suppress(OSError, ValueError):
        manifest = CorpusManifest.model_validate_json((folder / MANIFEST).read_bytes())
    for path in folder.glob(f"{INDEX_PREFIX}*"):
        if manifest is None or path.name != manifest.index:
            shutil.rmtree(path)
    sweep_vectors(folder, manifest)


def _engine() -> str:
    return f"tantivy {version('tantivy')}"


def _intact(folder: Path, builder: str) -> CorpusManifest | None:
    """The present corpus if it is undamaged and this program would build it alike."""
    try:
        manifest = CorpusManifest.model_validate_json((folder / MANIFEST).read_bytes())
        if (manifest.builder, manifest.index_schema, manifest.engine) != (
            builder,
            analysis.SCHEMA,
            _engine(),
        ):
            return None
        check_files(manifest.name, manifest.files, folder / manifest.index)
    except (OSError, ValueError, SearchError):
        return None
    return manifest


@dataclass(frozen=True)
class _Record:
    """What is kept of an indexed document: hashes of its content and origin, and its passages."""

    content: str
    origin: str
    passages: int


class _Build:
    """One build, going on from `base` where there is one."""

    def __init__(
        self, name: str, folder: Path, base: CorpusManifest | None, source: Source, builder: str
    ) -> None:
        self._name = name
        self._folder = folder
        self._base = base
        self._source = source
        self._builder = builder
        self._before = _read_records(folder / base.index) if base else {}
        self._records: dict[str, _Record] = {}
        self._passages = 0
        self._removed = 0
        self._added = 0

    def run(
        self, documents: Iterable[Document | Unread], cut: Cut, progress: Progress | None
    ) -> CorpusManifest:
        new = self._new_folder()
        try:
            with IndexWriter(new, self._folder / self._base.index if self._base else None) as index:
                for item in self._told(documents, progress):
                    self._take(item, cut, index)
                for gone in self._before.keys() - self._records.keys():
                    self._remove(gone, index)
                index.commit()
            if not self._passages:
                raise DataError(
                    f"The corpus `{self._name}` would be empty: its documents hold no text",
                    where="; ".join(self._source.left_out[:3]),
                )
            manifest = self._finish(new)
        except BaseException:
            shutil.rmtree(new, ignore_errors=True)
            if not (self._folder / MANIFEST).exists():
                shutil.rmtree(self._folder, ignore_errors=True)
            raise
        sweep(self._folder)
        return manifest

    def _told(
        self, documents: Iterable[Document | Unread], progress: Progress | None
    ) -> Iterator[Document | Unread]:
        for item in documents:
            if item.id in self._records:
                raise DataError(f"Two documents have the id `{item.id}`")
            yield item
            if progress and item.id in self._records and not len(self._records) % PROGRESS_EVERY:
                progress(len(self._records), self._passages)
        if progress:
            progress(len(self._records), self._passages)

    def _take(self, item: Document | Unread, cut: Cut, index: IndexWriter) -> None:
        """Index a document unless it is there already as it is now."""
        old = self._before.get(item.id)
        origin = item.origin if isinstance(item, Unread) else ""
        if old and origin and old.origin == origin:
            self._keep(item.id, old)
            return
        document = item.read() if isinstance(item, Unread) else item
        if document is None:
            return
        content = document.content_hash()
        if old and old.content == content:
            self._keep(item.id, _Record(content, origin, old.passages))
            return
        if old:
            self._remove(item.id, index)
        count = 0
        for passage in cut(document):
            index.add(passage, document.keywords)
            count += 1
        self._added += count
        self._keep(item.id, _Record(content, origin, count))

    def _keep(self, id: str, record: _Record) -> None:
        self._records[id] = record
        self._passages += record.passages

    def _remove(self, id: str, index: IndexWriter) -> None:
        index.delete(id)
        self._removed += self._before[id].passages

    def _finish(self, new: Path) -> CorpusManifest:
        """Swap the new index in, or keep the old one where nothing in it would differ."""
        history, stale, base = "", 0, self._base
        if base is not None:
            stale = base.stale + self._removed
            history = base.history
            if stale > STALE_SHARE * self._passages:
                fresh = self._new_folder()
                try:
                    rewrite(new, fresh)
                except BaseException:
                    shutil.rmtree(fresh, ignore_errors=True)
                    raise
                shutil.rmtree(new)
                fresh.rename(new)
                history, stale = "", 0
            elif self._removed:
                history = hashlib.sha256((base.history + base.content).encode()).hexdigest()
        _write_records(new, self._records)
        manifest = CorpusManifest(
            name=self._name,
            content=self._content(),
            history=history,
            documents=len(self._records),
            passages=self._passages,
            stale=stale,
            source=self._source.hash,
            paths=self._source.paths,
            left_out=tuple(self._source.left_out),
            builder=self._builder,
            index_schema=analysis.SCHEMA,
            engine=_engine(),
            index=new.name,
            files=checksums(new),
        )
        if base is not None and not self._added and not self._removed:
            # The old index, and with it the vectors that belong to it.
            kept = {"index": base.index, "files": base.files}
            manifest = manifest.model_copy(update=kept)
        replace_file(self._folder / MANIFEST, manifest.model_dump_json(indent=1).encode())
        return manifest

    def _new_folder(self) -> Path:
        return Path(tempfile.mkdtemp(prefix=INDEX_PREFIX, dir=self._folder))

    def _content(self) -> str:
        digest = hashlib.sha256()
        for name, record in sorted(self._records.items()):
            digest.update(f"{len(name)} {name} {record.content}\n".encode())
        return digest.hexdigest()


def _read_records(index: Path) -> dict[str, _Record]:
    with (index / RECORDS).open(encoding="utf-8") as file:
        rows = map(json.loads, file)
        return {name: _Record(*values) for name, *values in rows}


def _write_records(index: Path, records: dict[str, _Record]) -> None:
    with (index / RECORDS).open("w", encoding="utf-8") as file:
        for name, record in records.items():
            row = [name, record.content, record.origin, record.passages]
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
