"""Where corpora lie, and what each says of itself.

<corpora>/<name>/manifest.json      names the index in use; replacing it is the swap
<corpora>/<name>/index-<random>/    tantivy's files, and a line for each document
<corpora>/<name>/vectors.json       names the vectors in use, and the index they belong to
<corpora>/<name>/vectors-<random>/  the vectors in the order of the index, for searching
<corpora>/<name>/embedded.sqlite    each vector by its text, so that none is computed twice
<corpora>/.<name>.lock              held by the process that builds, embeds or removes
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pydantic import ValidationError

from offline_judge.domain.base import Frozen
from offline_judge.errors import MissingError, SearchError, StorageError, UsageError

MANIFEST = "manifest.json"
INDEX_PREFIX = "index-"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_CHUNK = 1 << 20


class CorpusManifest(Frozen):
    """What a corpus is.

    Attributes:
        name: The corpus.
        content: SHA-256 over ids and content of all documents; no time or path in it.
        history: Hash of the contents that this index had before, where passages of them still
            weigh in its statistics; empty where its scores depend on its content only.
        documents: Number of documents.
        passages: Number of passages.
        stale: Passages that were taken out and still weigh in the statistics.
        source: Hash of what it was built from, empty where the builder was told none.
        paths: The files and folders it was built from.
        left_out: What was left out of it and why, a sentence each.
        builder: Version of the cutting into passages.
        index_schema: Version of the index schema.
        engine: The index library and its format.
        index: Folder of the index, beside this manifest.
        files: Index file to its size in bytes and its CRC-32.
    """

    name: str
    content: str
    history: str = ""
    documents: int
    passages: int
    stale: int = 0
    source: str = ""
    paths: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    builder: str | int
    index_schema: int
    engine: str
    index: str
    files: dict[str, tuple[int, int]]


def corpus_path(name: str, corpora_path: Path) -> Path:
    """The folder of a corpus, whether it exists or not.

    Raises:
        UsageError: the name could leave the folder or be hidden in it.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"`{name}` cannot name a corpus",
            remedy="Use up to 64 letters, digits, dots, dashes and underscores.",
        )
    return corpora_path / name


def list_corpora(corpora_path: Path) -> list[str]:
    """Names of the corpora here, sorted; damaged ones among them."""
    if not corpora_path.is_dir():
        return []
    return sorted(path.parent.name for path in corpora_path.glob(f"*/{MANIFEST}"))


def read_manifest(name: str, corpora_path: Path) -> CorpusManifest:
    """The manifest of a corpus.

    Raises:
        MissingError: there is no such corpus.
        SearchError: its manifest is gone or damaged.
    """
    folder = corpus_path(name, corpora_path)
    try:
        return CorpusManifest.model_validate_json((folder / MANIFEST).read_bytes())
    except FileNotFoundError as error:
        if next(folder.glob(f"{INDEX_PREFIX}*"), None) is not None:
            raise damaged(name, f"{MANIFEST} is missing") from error
        here = ", ".join(list_corpora(corpora_path)) or "none"
        raise MissingError(
            f"There is no corpus `{name}` (here: {here})",
            remedy=f"Build it with `offline-judge corpus build {name} FILE`.",
        ) from error
    except (OSError, ValidationError) as error:
        raise damaged(name, f"{MANIFEST} cannot be read: {str(error).splitlines()[0]}") from error


def remove_corpus(name: str, corpora_path: Path) -> None:
    """Delete a corpus; a search that has it open goes on.

    Raises:
        MissingError: there is no such corpus.
        UsageError: another process is building it.
    """
    folder = corpus_path(name, corpora_path)
    if not folder.is_dir():
        read_manifest(name, corpora_path)
    with build_lock(name, corpora_path):
        (folder / MANIFEST).unlink(missing_ok=True)
        shutil.rmtree(folder)


def damaged(name: str, reason: str) -> SearchError:
    """The error of a corpus that cannot be searched as it lies there."""
    return SearchError(
        f"The corpus `{name}` is damaged: {reason}",
        remedy=f"Build it again with `offline-judge corpus build {name} FILE`.",
    )


def replace_file(path: Path, content: bytes) -> None:
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


def checksums(folder: Path) -> dict[str, tuple[int, int]]:
    """Size and CRC-32 of each file of an index, locks apart."""
    files = sorted(path for path in folder.iterdir() if not path.name.endswith(".lock"))
    return {path.name: _checksum(path) for path in files}


def check_files(name: str, files: Mapping[str, tuple[int, int]], folder: Path) -> None:
    """Compare files of a corpus with what was written; each is read once.

    Raises:
        SearchError: a file is missing, cut short or changed.
    """
    for file, expected in files.items():
        try:
            found = _checksum(folder / file)
        except OSError as error:
            raise damaged(name, f"{file}: {error.strerror or error}") from error
        if found[0] != expected[0]:
            raise damaged(name, f"{file} has {found[0]} bytes instead of {expected[0]}")
        if found[1] != expected[1]:
            raise damaged(name, f"{file} is not what was written")


@contextmanager
def build_lock(name: str, corpora_path: Path) -> Iterator[None]:
    """Hold the only right to change a corpus; it ends with the process, however that ends.

    Raises:
        UsageError: another process holds it.
        StorageError: the folder cannot be written.
    """
    corpus_path(name, corpora_path)
    try:
        corpora_path.mkdir(parents=True, exist_ok=True)
        file = (corpora_path / f".{name}.lock").open("a+")
    except OSError as error:
        raise StorageError(f"Cannot write corpora: {error}", where=str(corpora_path)) from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise UsageError(
                f"Process {file.read().strip() or '?'} is building the corpus `{name}`",
                remedy="Wait until it has ended.",
            ) from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield


def _checksum(path: Path) -> tuple[int, int]:
    size, crc = 0, 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            size += len(chunk)
            crc = zlib.crc32(chunk, crc)
    return size, crc
