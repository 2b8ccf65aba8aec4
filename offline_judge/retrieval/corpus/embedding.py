"""Embedding a corpus: each text once, resumed where it was interrupted, then one matrix."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from offline_judge.errors import BackendError, SearchError, StorageError
from offline_judge.protocols import Embedder
from offline_judge.retrieval.corpus.index import addresses, open_index, stored_fields
from offline_judge.retrieval.corpus.store import (
    CorpusManifest,
    build_lock,
    check_files,
    checksums,
    corpus_path,
    damaged,
    read_manifest,
    replace_file,
)
from offline_judge.retrieval.corpus.vector_store import VectorStore
from offline_judge.retrieval.corpus.vectors import (
    MATRIX,
    PLACES,
    VECTORS,
    VECTORS_PREFIX,
    VectorManifest,
    read_vector_manifest,
    sweep_vectors,
)

if TYPE_CHECKING:
    import numpy as np
    import tantivy
    from numpy.typing import NDArray

STORE = "embedded.sqlite"
# Texts that are kept together: what an interrupted build embeds once more at most.
BATCH = 16
_ROWS = 4096

Progress = Callable[[int, int], None]


def embed_corpus(
    name: str, corpora_path: Path, embedder: Embedder, progress: Progress | None = None
) -> VectorManifest:
    """Give every passage its vector; those that have one already are not embedded again.

    The search goes on by words, or with the vectors it has, until all are there.

    Args:
        name: The corpus.
        corpora_path: Folder of all corpora.
        embedder: What makes the vectors. Vectors of another one are never mixed with its own.
        progress: Told the distinct texts embedded so far, and all of them.

    Raises:
        MissingError: there is no such corpus.
        UsageError: another process is building it.
        SearchError: its word index is damaged.
        BackendError: the embedder failed; what is embedded stays.
        StorageError: the disk is full or cannot be written; what is embedded stays.
    """
    folder = corpus_path(name, corpora_path)
    read_manifest(name, corpora_path)
    with build_lock(name, corpora_path):
        manifest = read_manifest(name, corpora_path)
        if present := _intact(folder, manifest, embedder):
            return present
        check_files(name, manifest.files, folder / manifest.index)
        try:
            with closing(VectorStore(folder / STORE, embedder.id, embedder.dimension)) as store:
                return _Embedding(folder, manifest, embedder, store).run(progress)
        except OSError as error:
            raise StorageError(f"Cannot write the vectors: {error}", where=str(folder)) from error


def text_of(fields: dict[str, Any]) -> str:
    """What is embedded of a passage: its title and its text."""
    return ". ".join(filter(None, (fields["title"], fields["text"])))


def _intact(folder: Path, manifest: CorpusManifest, embedder: Embedder) -> VectorManifest | None:
    found = read_vector_manifest(folder, manifest)
    if found is None or found.embedder != embedder.id:
        return None
    try:
        check_files(manifest.name, found.files, folder / found.folder)
    except SearchError:
        return None
    return found


class _Embedding:
    """One call of `embed_corpus` that has something to do."""

    def __init__(
        self, folder: Path, manifest: CorpusManifest, embedder: Embedder, store: VectorStore
    ) -> None:
        self._folder = folder
        self._manifest = manifest
        self._embedder = embedder
        self._store = store
        try:
            self._searcher = open_index(folder / manifest.index).searcher()
            self._places = addresses(self._searcher)
            self._keys = [self._key(place) for place in self._places]
        except (ValueError, OSError) as error:
            raise damaged(manifest.name, str(error)) from error

    def run(self, progress: Progress | None) -> VectorManifest:
        sweep_vectors(self._folder, self._manifest)
        distinct = dict(zip(reversed(self._keys), reversed(self._places), strict=True))
        self._store.keep_only(distinct)
        missing = [key for key in dict.fromkeys(self._keys) if key not in self._store]
        done = len(distinct) - len(missing)
        if progress:
            progress(done, len(distinct))
        for keys in _batches(missing, BATCH):
            texts = [text_of(self._fields(distinct[key])) for key in keys]
            self._store.put(keys, self._embed(texts))
            done += len(keys)
            if progress:
                progress(done, len(distinct))
        return self._swap()

    def _fields(self, place: tantivy.DocAddress) -> dict[str, Any]:
        return stored_fields(self._searcher, place)

    def _key(self, place: tantivy.DocAddress) -> bytes:
        return hashlib.sha256(text_of(self._fields(place)).encode()).digest()[:16]

    def _embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        import numpy as np

        vectors = np.asarray(self._embedder.embed(texts, kind="passage"), dtype=np.float32)
        wanted = (len(texts), self._embedder.dimension)
        if vectors.shape != wanted or not np.isfinite(vectors).all():
            raise BackendError(
                f"The embedder {self._embedder.id} gave {vectors.shape} for {wanted} numbers, or "
                "some that are none"
            )
        return vectors

    def _swap(self) -> VectorManifest:
        """Write the matrix in the order of the index and put it in use."""
        new = Path(tempfile.mkdtemp(prefix=VECTORS_PREFIX, dir=self._folder))
        try:
            self._write(new)
            manifest = VectorManifest(
                embedder=self._embedder.id,
                dimension=self._embedder.dimension,
                index=self._manifest.index,
                folder=new.name,
                files=checksums(new),
            )
            replace_file(self._folder / VECTORS, manifest.model_dump_json(indent=1).encode())
        except BaseException:
            shutil.rmtree(new, ignore_errors=True)
            raise
        sweep_vectors(self._folder, self._manifest)
        return manifest

    def _write(self, folder: Path) -> None:
        # Written as plain files: a mapped one kills the process where the disk is full.
        import numpy as np

        shape = (len(self._keys), self._embedder.dimension)
        header = {"descr": "<f4", "fortran_order": False, "shape": shape}
        with (folder / MATRIX).open("wb") as file:
            np.lib.format.write_array_header_1_0(file, header)
            for keys in _batches(self._keys, _ROWS):
                file.write(self._store.get(keys).astype("<f4").tobytes())
        places = [(place.segment_ord << 32) | place.doc for place in self._places]
        np.save(folder / PLACES, np.array(places, dtype=np.uint64), allow_pickle=False)


def _batches(items: Sequence[bytes], size: int) -> Iterator[list[bytes]]:
    rest = iter(items)
    while batch := list(islice(rest, size)):
        yield batch
