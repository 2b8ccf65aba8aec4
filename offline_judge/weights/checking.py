"""Is a file what its card promises? Hashing, the notes that spare it, and the look inside."""

from __future__ import annotations

from pathlib import Path

from offline_judge.domain.base import text_hash
from offline_judge.errors import GgufError
from offline_judge.weights.cards import ModelFile
from offline_judge.weights.disk import file_sha256, read_json, reading, write_json
from offline_judge.weights.fetching import Meter
from offline_judge.weights.gguf import read_header

IN_PLACE = "the file in place"
"""How a meter names a file that is read where it belongs."""


class CheckNotes:
    """Remembers which files were hashed and right, by size and time of change.

    Args:
        folder: Where the notes are, one small file each; may be deleted at any time.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def knows(self, file: ModelFile, path: Path) -> bool:
        """This very file was right when it was hashed and has not been touched since."""
        return read_json(self._note(file, path)) == _fingerprint(file, path)

    def remember(self, file: ModelFile, path: Path) -> None:
        """Note that this file is right. Not being able to costs time later, so it is no error."""
        note = self._note(file, path)
        try:
            note.parent.mkdir(parents=True, exist_ok=True)
            write_json(note, _fingerprint(file, path))
        except OSError:
            return

    def _note(self, file: ModelFile, path: Path) -> Path:
        return self._folder / f"{text_hash(f'{path.resolve()} {file.sha256}')}.json"


def size_problem(file: ModelFile, path: Path) -> str:
    """Why the size is wrong; empty where it is right."""
    with reading(path):
        size = path.stat().st_size
    return "" if size == file.size else f"it has {size} bytes, not {file.size}"


def content_problem(file: ModelFile, path: Path, meter: Meter | None, source: str) -> str:
    """Why the content is wrong, after reading all of it; empty where it is right."""

    def seen(done: int) -> None:
        if meter is not None:
            meter.at("check", source, done)

    found = file_sha256(path, seen)
    return "" if found == file.sha256 else f"its SHA-256 is {found}, not {file.sha256}"


def file_problem(
    file: ModelFile, path: Path, notes: CheckNotes, *, known: bool, meter: Meter | None = None
) -> str:
    """Why a file in place is not the card's; with `known` an earlier check is believed."""
    problem = size_problem(file, path)
    if problem or (known and notes.knows(file, path)):
        return problem
    problem = content_problem(file, path, meter, IN_PLACE)
    if not problem:
        notes.remember(file, path)
    return problem


def check_gguf(file: ModelFile, path: Path) -> None:
    """Look into a file that calls itself GGUF; others pass.

    Raises:
        GgufError: it is no GGUF, is damaged or is cut short.
    """
    if file.name.lower().endswith(".gguf"):
        with reading(path):
            read_header(path)


def gguf_problem(file: ModelFile, path: Path) -> str:
    """What `check_gguf` has to say; empty where it is content."""
    try:
        check_gguf(file, path)
    except GgufError as error:
        return error.message
    return ""


def _fingerprint(file: ModelFile, path: Path) -> dict[str, str | int]:
    with reading(path):
        status = path.stat()
    return {"size": status.st_size, "mtime_ns": status.st_mtime_ns, "sha256": file.sha256}
