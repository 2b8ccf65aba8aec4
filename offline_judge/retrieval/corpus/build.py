"""Building a corpus: documents in, a searchable index out, swapped in as a whole."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path

from offline_judge.domain.base import canonical_json
from offline_judge.domain.evidence import Passage
from offline_judge.errors import DataError, SearchError, StorageError
from offline_judge.retrieval.corpus import analysis
from offline_judge.retrieval.corpus.documents import Document
from offline_judge.retrieval.corpus.passages import cut_document
from offline_judge.retrieval.corpus.store import (
    INDEX_PREFIX,
    MANIFEST,
    CorpusManifest,
    build_lock,
    check_files,
    checksums,
    corpus_path,
)

BUILDER = 1  # goes up when the same documents are cut or stored differently
PROGRESS_EVERY = 500
_HEAP_BYTES = 64_000_000

Progress = Callable[[int, int], None]
Cut = Callable[[Document], Iterable[Passage]]


def build_corpus(
    name: str,
    documents: Iterable[Document],
    corpora_path: Path,
    progress: Progress | None = None,
    *,
    source: str = "",
    cut: Cut = cut_document,
) -> CorpusManifest:
    """Build a corpus, or leave it as it is where its source has not changed.

    Documents are streamed: memory holds the index writer's buffer and the documents' ids. The
    old corpus stays in use until the new one is complete on disk.

    Args:
        name: Letters, digits, dots, dashes, underscores.
        documents: Not touched where `source` says that nothing has changed.
        corpora_path: Folder of all corpora.
        progress: Told the documents and passages indexed so far, and once at the end.
        source: Hash of what `documents` are made from; empty builds always.
        cut: How a document becomes passages.

    Raises:
        UsageError: a bad name, or another process is building this corpus.
        DataError: no passages, two documents of one id, or text that is no Unicode.
        StorageError: the disk is full or cannot be written.
    """
    folder = corpus_path(name, corpora_path)
    if source and (current := _intact(folder, source)):
        return current
    with build_lock(name, corpora_path):
        try:
            folder.mkdir(exist_ok=True)
            _sweep(folder)
            return _build(name, _Stream(documents, cut, progress), folder, source)
        except OSError as error:
            raise StorageError(f"Cannot write the corpus: {error}", where=str(folder)) from error


def _engine() -> str:
    return f"tantivy {version('tantivy')}"


def _intact(folder: Path, source: str) -> CorpusManifest | None:
    """The present corpus if it was built of this source by this program, and is undamaged."""
    try:
        manifest = CorpusManifest.model_validate_json((folder / MANIFEST).read_bytes())
        check_files(manifest, folder / manifest.index)
    except (OSError, ValueError, SearchError):
        return None
    built = (manifest.source, manifest.builder, manifest.index_schema, manifest.engine)
    return manifest if built == (source, BUILDER, analysis.SCHEMA, _engine()) else None


def _sweep(folder: Path) -> None:
    """Delete what interrupted builds left, keeping the index in use."""
    try:
        manifest = CorpusManifest.model_validate_json((folder / MANIFEST).read_bytes())
        used = manifest.index
    except (OSError, ValueError):
        used = ""
    for path in folder.glob(f"{INDEX_PREFIX}*"):
        if path.name != used:
            shutil.rmtree(path)


class _Stream:
    """Passages of a stream of documents, with the document each was cut from; counts both."""

    def __init__(self, documents: Iterable[Document], cut: Cut, progress: Progress | None) -> None:
        self.documents = 0
        self.passages = 0
        self._stream = documents
        self._cut = cut
        self._progress = progress

    def __iter__(self) -> Iterator[tuple[Passage, Document]]:
        seen: set[str] = set()
        for document in self._stream:
            if document.id in seen:
                raise DataError(f"Two documents have the id `{document.id}`")
            seen.add(document.id)
            self.documents += 1
            for passage in self._cut(document):
                self.passages += 1
                yield passage, document
            if self._progress and self.documents % PROGRESS_EVERY == 0:
                self._progress(self.documents, self.passages)
        if self._progress:
            self._progress(self.documents, self.passages)


def _build(name: str, passages: _Stream, folder: Path, source: str) -> CorpusManifest:
    new = Path(tempfile.mkdtemp(prefix=INDEX_PREFIX, dir=folder))
    try:
        content = _write_index(passages, new)
        if not passages.passages:
            raise DataError(f"The corpus `{name}` would be empty: its documents hold no text")
        manifest = CorpusManifest(
            name=name,
            content=content,
            documents=passages.documents,
            passages=passages.passages,
            source=source,
            builder=BUILDER,
            index_schema=analysis.SCHEMA,
            engine=_engine(),
            index=new.name,
            files=checksums(new),
        )
        _replace(folder / MANIFEST, manifest.model_dump_json(indent=1).encode())
    except BaseException:
        shutil.rmtree(new, ignore_errors=True)
        if not (folder / MANIFEST).exists():
            shutil.rmtree(folder, ignore_errors=True)
        raise
    _sweep(folder)
    return manifest


def _write_index(passages: _Stream, folder: Path) -> str:
    """Index all passages; returns the hash of their content."""
    import tantivy

    digest = hashlib.sha256()
    index = tantivy.Index(analysis.schema(), path=str(folder))
    analysis.register(index)
    # One thread: the order of the source decides where passages land in the index.
    writer = index.writer(heap_size=_HEAP_BYTES, num_threads=1)
    try:
        for passage, document in passages:
            stored = _stored(passage, document)
            digest.update(canonical_json([stored, document.keywords]).encode() + b"\n")
            fields = analysis.index_fields(passage.title, document.keywords, passage.text)
            entry = tantivy.Document(**fields, **{analysis.STORED: stored})
            with _disk_errors(folder):
                writer.add_document(entry)
        with _disk_errors(folder):
            writer.commit()
    finally:
        # Ends the writer's threads, so that nothing is written to the folder from here on.
        with suppress(ValueError):
            writer.wait_merging_threads()
    return digest.hexdigest()


@contextmanager
def _disk_errors(folder: Path) -> Iterator[None]:
    """Translate what tantivy raises where the disk fails."""
    try:
        yield
    except ValueError as error:
        raise StorageError(f"Cannot write the index: {error}", where=str(folder)) from error


def _stored(passage: Passage, document: Document) -> str:
    fields: dict[str, object] = passage.model_dump(exclude={"source", "url", "date"})
    extra = {"url": document.url, "date": document.date}
    stored = canonical_json(fields | {key: value for key, value in extra.items() if value})
    try:
        stored.encode()
    except UnicodeEncodeError:
        raise DataError(f"The document `{document.id}` holds half of a surrogate pair") from None
    return stored


def _replace(path: Path, content: bytes) -> None:
    """Write a file so that a reader, or a crash, sees the old or the new one as a whole."""
    temporary = path.with_suffix(".tmp")
    with temporary.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
