"""The word index of a corpus: writing it, going on from an earlier one, listing what is in it."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from offline_judge.domain.base import canonical_json
from offline_judge.domain.evidence import Passage
from offline_judge.errors import StorageError
from offline_judge.retrieval.corpus import analysis

if TYPE_CHECKING:
    import tantivy

_HEAP_BYTES = 64_000_000
_KEYWORDS = "keywords"


class IndexWriter:
    """Writes an index into a folder of its own. Use as a context manager: it ends its threads.

    Args:
        folder: Exists and is empty.
        base: Folder of an index to go on from. Its files are shared by hard links and never
            changed: the index library writes new files only.

    Raises:
        StorageError: the disk is full or cannot be written.
    """

    def __init__(self, folder: Path, base: Path | None = None) -> None:
        import tantivy

        self._folder = folder
        if base is not None:
            _share(base, folder)
        with self._disk_errors():
            if base is None:
                index = tantivy.Index(analysis.schema(), path=str(folder))
            else:
                index = tantivy.Index.open(str(folder))
            analysis.register(index)
            # One thread: the order of the source decides where passages land in the index.
            self._writer = index.writer(heap_size=_HEAP_BYTES, num_threads=1)

    def __enter__(self) -> IndexWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # Ends the writer's threads, so that nothing is written to the folder from here on.
        with suppress(ValueError):
            self._writer.wait_merging_threads()

    def add(self, passage: Passage, keywords: Iterable[str]) -> None:
        """Index a passage.

        Raises:
            StorageError: the disk is full or cannot be written.
        """
        import tantivy

        keywords = tuple(keywords)
        fields = analysis.index_fields(passage.title, keywords, passage.text)
        stored = {analysis.STORED: _stored(passage, keywords).encode()}
        entry = tantivy.Document(**fields, **{analysis.DOCUMENT: passage.document_id}, **stored)
        with self._disk_errors():
            self._writer.add_document(entry)

    def delete(self, document_id: str) -> None:
        """Take all passages of a document out, but for those that are added from here on."""
        with self._disk_errors():
            self._writer.delete_documents_by_term(analysis.DOCUMENT, document_id)

    def commit(self) -> None:
        """Put everything on disk.

        Raises:
            StorageError: the disk is full or cannot be written.
        """
        with self._disk_errors():
            self._writer.commit()

    @contextmanager
    def _disk_errors(self) -> Iterator[None]:
        """Translate what tantivy raises where the disk fails."""
        try:
            yield
        except ValueError as error:
            message = f"Cannot write the index: {error}"
            raise StorageError(message, where=str(self._folder)) from error


def open_index(folder: Path) -> tantivy.Index:
    """Open an index that nobody writes to any more.

    Raises:
        ValueError: it is damaged.
    """
    import tantivy

    index = tantivy.Index.open(str(folder))
    analysis.register(index)
    # Nobody writes to this folder again, so there is nothing to watch for.
    index.config_reader(reload_policy="manual")
    return index


def addresses(searcher: tantivy.Searcher) -> list[tantivy.DocAddress]:
    """Where each passage lies, in the order of the index; the same whenever it is opened."""
    import tantivy

    if not searcher.num_docs:
        return []
    hits = searcher.search(tantivy.Query.all_query(), limit=searcher.num_docs, count=False).hits
    return sorted((address for _, address in hits), key=lambda a: (a.segment_ord, a.doc))


def stored_fields(searcher: tantivy.Searcher, address: tantivy.DocAddress) -> dict[str, Any]:
    """What is stored of a passage.

    Raises:
        ValueError: the index is damaged.
    """
    fields: dict[str, Any] = json.loads(searcher.doc(address)[analysis.STORED][0])
    return fields


def passage_of(fields: Mapping[str, Any], source: str = "") -> Passage:
    """The passage that `stored_fields` are of.

    Raises:
        ValueError: they are damaged.
    """
    shown = {name: value for name, value in fields.items() if name != _KEYWORDS}
    return Passage(**shown, source=source)


def rewrite(base: Path, folder: Path) -> None:
    """Index what is left in `base` anew: nothing of what was deleted weighs in any more.

    Raises:
        StorageError: the disk is full or cannot be written.
    """
    searcher = open_index(base).searcher()
    with IndexWriter(folder) as writer:
        for address in addresses(searcher):
            fields = stored_fields(searcher, address)
            writer.add(passage_of(fields), fields.get(_KEYWORDS, ()))
        writer.commit()


def _share(base: Path, folder: Path) -> None:
    for path in base.iterdir():
        if path.name.endswith((".lock", ".jsonl")):
            continue
        try:
            os.link(path, folder / path.name)
        except OSError:
            # Not every file system has hard links.
            shutil.copyfile(path, folder / path.name)


def _stored(passage: Passage, keywords: tuple[str, ...]) -> str:
    fields: dict[str, object] = passage.model_dump(exclude={"source"})
    fields[_KEYWORDS] = keywords
    optional = {"url", "date", _KEYWORDS}
    return canonical_json(
        {name: value for name, value in fields.items() if value or name not in optional}
    )
