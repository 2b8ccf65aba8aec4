"""Owns how files are written whole or not at all, and what a failed write is called."""

from __future__ import annotations

import errno
import os
import secrets
from pathlib import Path

from offline_judge.errors import StorageError

# EFBIG is what a limit on file sizes says, EDQUOT a quota: to a user all three are "full".
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def write_atomic(path: Path, data: bytes, *, mode: int = 0o600) -> None:
    """Write a file so that a reader, or a crash at any point, sees the old or the new one whole.

    Raises:
        StorageError: it could not be written; the old file, if any, is untouched.
    """
    part = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        try:
            _write_synced(part, data, mode)
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
        sync_directory(path.parent)
    except OSError as error:
        raise storage_error(error, path) from error


def sync_directory(path: Path) -> None:
    """Make names in a directory durable.

    Raises:
        OSError: the directory cannot be opened or synced.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        sync(descriptor)
    finally:
        os.close(descriptor)


def sync(descriptor: int) -> None:
    """Make a file's content durable; a file system that cannot sync is left alone.

    Raises:
        OSError: the device failed to take the data.
    """
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise


def is_full(error: OSError) -> bool:
    """Whether there was no room, by the disk, a quota or a limit on file sizes."""
    return error.errno in _FULL


def storage_error(error: OSError, path: Path, *, run_id: str = "") -> StorageError:
    """Say what went wrong with a file, and what to do where the disk is full."""
    if is_full(error):
        return full_error(path, run_id=run_id)
    return StorageError(f"Cannot write: {error.strerror or error}", where=str(path))


def full_error(path: Path, *, run_id: str = "") -> StorageError:
    """The error for a full disk."""
    remedy = "Free some space"
    remedy += f", then: offline-judge resume {run_id}" if run_id else " and try again."
    return StorageError("The disk is full.", where=str(path), remedy=remedy)


def _write_synced(path: Path, data: bytes, mode: int) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        sync(file.fileno())
