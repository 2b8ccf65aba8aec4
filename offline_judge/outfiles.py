"""Owns how files that the user named are written: whole or not at all."""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from offline_judge.errors import StorageError


def write_output(path: Path, pieces: Iterable[str]) -> None:
    """Write text in UTF-8, as it is; a device or a pipe is written to in place.

    A lone surrogate, which has no UTF-8, becomes an escape.

    Raises:
        StorageError: it could not be written; an old file is untouched.
        Exception: what `pieces` raises; an old file is untouched then, too.
    """
    try:
        if path.exists() and not path.is_file():
            _write(path, pieces)  # a folder is refused by the system
            return
        part = path.parent / f".{secrets.token_hex(8)}.part"
        try:
            _write(part, pieces)
            part.replace(path)
        finally:
            with suppress(OSError):
                part.unlink()
    except OSError as error:
        raise _cannot_write(error, path) from error


def make_output_folder(path: Path) -> None:
    """Make a folder where there is none, and see that it takes files.

    Raises:
        StorageError: it cannot be made, or takes none.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        raise _cannot_write(error, path) from error


def _write(path: Path, pieces: Iterable[str]) -> None:
    with path.open("w", encoding="utf-8", errors="backslashreplace", newline="") as file:
        file.writelines(pieces)


def _cannot_write(error: OSError, path: Path) -> StorageError:
    return StorageError(f"Cannot write: {error.strerror or error}", where=str(path))
