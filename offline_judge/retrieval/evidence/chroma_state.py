"""What an index of vectors says of itself, in a file beside it."""

from __future__ import annotations

import zlib
from contextlib import suppress
from pathlib import Path

from pydantic import Field, ValidationError

from offline_judge.domain.base import Frozen
from offline_judge.errors import StorageError
from offline_judge.retrieval.evidence.chroma_process import IndexFaultError

_CHUNK = 1 << 20
_DATABASE = "chroma.sqlite3"


class IndexState(Frozen):
    """What an index holds, written beside it.

    Attributes:
        data: Its data folder.
        last: It holds the vectors up to this number.
        deletions: It has followed this many deletions in the record.
        recall: Of known neighbours, when it was filled.
        clean: It was closed in good order; else `files` means nothing.
        files: File to its size in bytes and its CRC-32.
    """

    data: str
    last: int = 0
    deletions: int = 0
    recall: float = 0.0
    clean: bool = False
    files: dict[str, tuple[int, int]] = Field(default_factory=dict)


class StateFile:
    """`state.json` in the folder of one collection.

    Args:
        folder: Where it lies, beside the data folder that it names.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path = folder / "state.json"

    def read(self) -> IndexState | None:
        """What it says; None where there is neither state nor data.

        Raises:
            IndexFaultError: it is gone or cannot be read.
        """
        try:
            return IndexState.model_validate_json(self._path.read_bytes())
        except FileNotFoundError:
            if next(self._folder.glob("data-*"), None) is not None:
                raise IndexFaultError("its state is gone") from None
            return None
        except (OSError, ValidationError) as error:
            raise IndexFaultError("its state cannot be read") from error

    def write(self, state: IndexState) -> None:
        """Replace it as a whole.

        Raises:
            StorageError: it cannot be written; it says what it said before.
        """
        part = self._path.with_suffix(".part")
        try:
            part.write_text(state.model_dump_json(), "utf-8")
            part.replace(self._path)
        except OSError as error:
            with suppress(OSError):
                part.unlink(missing_ok=True)
            raise StorageError(
                f"The vector index cannot be written: {error.strerror}",
                where=str(self._path),
                remedy="Make room on that disk; nothing of record is lost.",
            ) from error

    def remove(self) -> None:
        """Delete it; nothing to do where it is gone."""
        self._path.unlink(missing_ok=True)

    def compare_files(self, state: IndexState) -> None:
        """Compare the data folder with what was there when it was closed in good order.

        Raises:
            IndexFaultError: something is gone or has changed.
        """
        self.check_there(state)
        if not state.clean:
            return
        found = checksums(self._folder / state.data)
        wrong = sorted(name for name in state.files if found.get(name) != state.files[name])
        if wrong:
            raise IndexFaultError(f"{', '.join(wrong)} changed since it was closed")

    def check_there(self, state: IndexState) -> None:
        """Look whether the files of the data folder are there, without reading them.

        Raises:
            IndexFaultError: one is gone, or has another size than when it was closed.
        """
        data = self._folder / state.data
        if not data.is_dir():
            raise IndexFaultError("its folder is gone")
        sizes: dict[str, int | None] = {}
        if state.clean:
            sizes |= {name: size for name, (size, _) in state.files.items()}
        if state.last:
            # Whoever holds it open may make and delete all others.
            sizes.setdefault(_DATABASE, None)
        for name, size in sorted(sizes.items()):
            try:
                found = (data / name).stat().st_size
            except OSError:
                raise IndexFaultError(f"{name} is gone") from None
            if size not in (None, found):
                raise IndexFaultError(f"{name} changed since it was closed")


def checksums(folder: Path) -> dict[str, tuple[int, int]]:
    """Size and CRC-32 of every file below a folder."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            crc = 0
            with path.open("rb") as file:
                while chunk := file.read(_CHUNK):
                    crc = zlib.crc32(chunk, crc)
            found[path.relative_to(folder).as_posix()] = (path.stat().st_size, crc)
    return found
