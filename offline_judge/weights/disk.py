"""Durable moves, small atomic files, free space and hashes, with errors a user can act on."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from offline_judge.errors import StorageError

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_BLOCK = 1 << 20
_REMEDY = (
    "Set models_dir and cache_dir (OFFLINE_JUDGE_MODELS_DIR, OFFLINE_JUDGE_CACHE_DIR) to a place "
    "that can be written and has room."
)


def human(size: int) -> str:
    """Bytes for people, such as `1.12 GB`."""
    if size < 1_000_000:
        return f"{size:,} bytes"
    return f"{size / 1e9:.2f} GB" if size >= 1_000_000_000 else f"{size / 1e6:.1f} MB"


@contextmanager
def storing(path: Path, needed: int = 0) -> Iterator[None]:
    """Turn an `OSError` into a `StorageError` that says where, how much is needed and what to do.

    Args:
        path: The file or folder that is written.
        needed: Bytes still to be written, for the message of a full disk; 0 leaves it out.
    """
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            more = f" {human(needed)} more are needed." if needed else ""
            raise StorageError(
                f"The disk is full.{more} What was fetched is kept for the next try.",
                where=str(path),
                remedy="Free some space and run the same command again. " + _REMEDY,
            ) from error
        reason = error.strerror or str(error)
        raise StorageError(
            f"Cannot write here: {reason}.", where=str(path), remedy=_REMEDY
        ) from error


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn an `OSError` into a `StorageError` that names the file which cannot be read."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise StorageError(f"Cannot read this file: {reason}.", where=str(path)) from error


def check_space(folder: Path, needed: int) -> None:
    """Refuse to begin what would fill the disk.

    Raises:
        StorageError: fewer than `needed` bytes are free where `folder` is or will be.
    """
    place = folder
    while not place.exists():
        place = place.parent
    with storing(place):
        free = shutil.disk_usage(place).free
    if free < needed:
        raise StorageError(
            f"Not enough disk space: {human(needed)} needed, {human(free)} free.",
            where=str(folder),
            remedy=_REMEDY,
        )


def sync_folder(folder: Path) -> None:
    """Make names in `folder` durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_file(path: Path) -> None:
    """Make the content of a file durable."""
    with path.open("rb") as file:
        os.fsync(file.fileno())


def write_json(path: Path, value: dict[str, Any], *, durable: bool = False) -> None:
    """Replace a small file atomically; a durable one outlasts a power cut, and is indented."""
    write_text(path, json.dumps(value, indent=2 if durable else None) + "\n", durable=durable)


def write_text(path: Path, text: str, *, durable: bool = True) -> None:
    """Replace a small file atomically; a durable one outlasts a power cut."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_text(text, encoding="utf-8")
        if durable:
            sync_file(temporary)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    if durable:
        sync_folder(path.parent)


def read_json(path: Path) -> dict[str, Any]:
    """The object in a small file; empty where it is absent or cannot be read."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def file_sha256(path: Path, seen: Callable[[int], None]) -> str:
    """SHA-256 of a file as hex digits; `seen` is told the bytes read so far."""
    digest, done = hashlib.sha256(), 0
    with reading(path):
        file = path.open("rb")
    with file:
        while True:
            with reading(path):
                block = file.read(_BLOCK)
            if not block:
                return digest.hexdigest()
            digest.update(block)
            done += len(block)
            seen(done)


def move_durably(source: Path, target: Path) -> None:
    """Move a file so that `target` is either absent or whole, whatever happens; replaces it.

    Works between file systems, where it needs room for a second copy.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    sync_file(source)
    try:
        source.replace(target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        copy_durably(source, target)
        source.unlink()
    sync_folder(target.parent)


def copy_durably(
    source: Path, target: Path, check: Callable[[Path], None] = lambda _: None
) -> None:
    """Copy a file so that `target` is either absent or whole, whatever happens; replaces it.

    Args:
        source: The file.
        target: Where the copy belongs.
        check: Looks at the copy before it is put there, and may refuse it by raising.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    incoming = target.with_name(f".{target.name}.incoming")
    try:
        shutil.copyfile(source, incoming)
        check(incoming)
        sync_file(incoming)
        incoming.replace(target)
    finally:
        incoming.unlink(missing_ok=True)
    sync_folder(target.parent)
