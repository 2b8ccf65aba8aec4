"""Files and folders as documents: which ones are read, how, and what is left out and why."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from offline_judge.errors import DataError
from offline_judge.retrieval.corpus.build import Source
from offline_judge.retrieval.corpus.documents import (
    Document,
    Unread,
    file_hash,
    read_documents,
)
from offline_judge.retrieval.corpus.extraction import Extractor
from offline_judge.retrieval.corpus.html_text import BYTE_ORDER_MARKS
from offline_judge.retrieval.corpus.markdown import read_markdown

READING = 1  # goes up when the same file is read differently
# Suffix to the way a file is read.
KINDS = {
    ".jsonl": "rows",
    ".ndjson": "rows",
    ".md": "markdown",
    ".markdown": "markdown",
    ".txt": "text",
    ".text": "text",
    ".html": "html",
    ".htm": "html",
    ".xhtml": "html",
    ".pdf": "pdf",
}
# Bytes of the largest file of a kind; rows are streamed.
LARGEST = {"markdown": 50 << 20, "text": 50 << 20, "html": 20 << 20, "pdf": 500 << 20}

_SHOWN_ROWS = 3
_SHOWN_SUFFIXES = 6
_NO_TEXT = {
    "pdf": "it holds no text, only pictures of it perhaps; run it through OCR (ocrmypdf) first",
}


@dataclass(frozen=True)
class _File:
    """A file to read: its id in the corpus, and whether it was named by the user itself."""

    path: Path
    id: str
    kind: str
    named: bool


class FileSource:
    """The documents of files and folders, in a fixed order. Use as a context manager.

    A folder is searched through; names that begin with a dot are passed over, and links to
    folders are not followed. What cannot be used is left out and said in `source.left_out`, but a
    broken file that was named itself, or a bad row, is an error unless `skip_bad` is set.

    Args:
        paths: Files and folders.
        skip_bad: Leave out broken files and bad rows.

    Raises:
        DataError: a path does not exist, or is of a kind that is not read.
    """

    def __init__(self, paths: Sequence[Path], *, skip_bad: bool = False) -> None:
        self._skip_bad = skip_bad
        self._extractor = Extractor()
        self._others: Counter[str] = Counter()
        self._left: list[str] = []
        several = len(paths) > 1
        self._files = [file for path in paths for file in self._found(path, several)]
        if self._others:
            self._left.insert(0, self._told_others())
        self.source = Source(
            hash=self._hash(),
            paths=tuple(str(path.absolute()) for path in paths),
            left_out=self._left,
        )

    def __enter__(self) -> FileSource:
        return self

    def __exit__(self, *_: object) -> None:
        self._extractor.close()

    def __iter__(self) -> Iterator[Document | Unread]:
        for file in self._files:
            if file.kind == "rows":
                yield from self._rows(file)
            else:
                origin = f"{READING} {file.kind} {self._hashes[file.path]}"
                yield Unread(file.id, origin, partial(self._document, file))

    def _found(self, path: Path, several: bool) -> Iterator[_File]:
        """The files at a path the user named."""
        if path.is_dir():
            prefix = f"{path.resolve().name}/" if several else ""
            yield from self._in_folder(path, prefix)
            return
        if not path.is_file():
            reason = "is no ordinary file" if path.exists() else "does not exist"
            raise DataError(f"Cannot read the file: it {reason}", where=str(path))
        kind = KINDS.get(path.suffix.lower())
        if kind is None:
            raise DataError(
                f"Files of the kind `{path.suffix}` are not read"
                if path.suffix
                else "The file has no suffix that says what is in it",
                where=str(path),
                remedy=f"Kinds: {', '.join(KINDS)}.",
            )
        yield _File(path, _id(path.name), kind, named=True)

    def _in_folder(self, root: Path, prefix: str) -> Iterator[_File]:
        for folder, folders, names in os.walk(root, onerror=self._unlisted):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for name in sorted(names):
                path = Path(folder) / name
                if name.startswith("."):
                    continue
                kind = KINDS.get(path.suffix.lower())
                if kind is None or not path.is_file():
                    self._others[path.suffix.lower() or "without a suffix"] += 1
                    continue
                inner = path.relative_to(root).as_posix()
                yield _File(path, _id(prefix + inner), kind, named=False)

    def _unlisted(self, error: OSError) -> None:
        self._left.append(f"{error.filename}: the folder cannot be read: {error.strerror}")

    def _told_others(self) -> str:
        number = sum(self._others.values())
        shown = [f"{name} ({n})" for name, n in self._others.most_common(_SHOWN_SUFFIXES)]
        more = ["..."] if len(self._others) > _SHOWN_SUFFIXES else []
        files = "1 file" if number == 1 else f"{number:,} files"
        return f"{files} of kinds that are not read: {', '.join(shown + more)}"

    def _hash(self) -> str:
        """Identity of all files; one that cannot be read is left out here already."""
        self._hashes: dict[Path, str] = {}
        digest = hashlib.sha256(f"files {READING} {self._skip_bad}\n".encode())
        files, self._files = self._files, []
        for file in files:
            try:
                self._hashes[file.path] = file_hash(file.path)
            except DataError as error:
                self._leave_out(file, error)
                continue
            self._files.append(file)
            digest.update(f"{file.id}\0{file.kind}\0{self._hashes[file.path]}\n".encode())
        return digest.hexdigest()

    def _leave_out(self, file: _File, error: DataError) -> None:
        if file.named and not self._skip_bad:
            if not error.remedy:
                error.remedy = "Mend it, or leave it out with --skip-bad."
            raise error
        self._left.append(f"{file.id}: {error.message}")

    def _rows(self, file: _File) -> Iterator[Document]:
        bad: list[str] | None = [] if self._skip_bad else None
        yield from read_documents(file.path, bad)
        if bad:
            more = "; ..." if len(bad) > _SHOWN_ROWS else ""
            shown = "; ".join(bad[:_SHOWN_ROWS])
            self._left.append(f"{file.id}: {len(bad)} bad rows: {shown}{more}")

    def _document(self, file: _File) -> Document | None:
        try:
            document = self._read(file)
        except DataError as error:
            self._leave_out(file, error)
            return None
        if not document.text.strip():
            self._left.append(f"{file.id}: {_NO_TEXT.get(file.kind, 'it holds no text')}")
            return None
        return document

    def _read(self, file: _File) -> Document:
        """Read one file.

        Raises:
            DataError: it is too large or broken.
        """
        stem = file.path.stem
        try:
            size = file.path.stat().st_size
            if size > LARGEST[file.kind]:
                largest = LARGEST[file.kind] >> 20
                raise DataError(f"It is larger than {largest} MiB", where=str(file.path))
            if file.kind in ("html", "pdf"):
                found = self._extractor.read(file.path, file.kind)
            else:
                found = {"text": _decoded(file.path)}
        except OSError as error:
            reason = error.strerror or str(error)
            raise DataError(f"Cannot read the file: {reason}", where=str(file.path)) from error
        title = found.get("title", "").strip() or stem
        url, date = found.get("url", ""), found.get("date", "")
        if file.kind not in ("html", "markdown"):
            return Document(file.id, title, found["text"], url, date)
        if file.kind == "html":
            marked = read_markdown(found["text"], title=title)
        else:
            marked = read_markdown(found["text"], fallback=title)
        return Document(
            file.id,
            marked.title,
            marked.text,
            url=url or marked.url,
            date=date or marked.date,
            sections=marked.sections,
        )


def _decoded(path: Path) -> str:
    raw = path.read_bytes()
    for mark, encoding in BYTE_ORDER_MARKS:
        if raw.startswith(mark):
            return raw.decode(encoding, "replace").replace("\r\n", "\n")
    try:
        return raw.decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise DataError("It is not UTF-8; save it as that", where=str(path)) from error


def _id(name: str) -> str:
    """A file's name as Unicode, whatever bytes it is made of."""
    return os.fsencode(name).decode("utf-8", "replace")
