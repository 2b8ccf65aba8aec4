"""Where corpora lie, and what each says of itself.

<corpora>/<name>/manifest.json    names the index in use; replacing it is the swap
<corpora>/<name>/index-<random>/  tantivy's files
<corpora>/.<name>.lock            held by the process that builds or removes
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import zlib
from collections.abc import Iterator
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
        content: SHA-256 over all passages in their order; no time, path or file name in it.
        documents: Number of documents.
        passages: Number of passages.
        source: Hash of what it was built from, empty where the builder was told none.
        builder: Version of the cutting into passages.
        index_schema: Version of the index schema.
        engine: The index library and its format.
        index: Folder of the index, beside this manifest.
        files: Index file to its size in bytes and its CRC-32.
    """

    name: str
    content: str
    documents: int
    passages: int
    source: str = ""
    builder: int
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


def checksums(folder: Path) -> dict[str, tuple[int, int]]:
    """Size and CRC-32 of each file of an index, locks apart."""
    files = sorted(path for path in folder.iterdir() if not path.name.endswith(".lock"))
    return {path.name: _checksum(path) for path in files}


def check_files(manifest: CorpusManifest, folder: Path) -> None:
    """Compare an index with its manifest; the whole index is read once.

    Raises:
        SearchError: a file is missing, cut short or changed.
    """
    for name, expected in manifest.files.items():
        try:
            found = _checksum(folder / name)
        except OSError as error:
            raise damaged(manifest.name, f"{name}: {error.strerror or error}") from error
        if found[0] != expected[0]:
            raise damaged(manifest.name, f"{name} has {found[0]} bytes instead of {expected[0]}")
        if found[1] != expected[1]:
            raise damaged(manifest.name, f"{name} is not what was written")


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
