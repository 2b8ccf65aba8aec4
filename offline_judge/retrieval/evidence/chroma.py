"""The vector index: Chroma as a cache of the vectors in SQLite, believed only after a test.

<evidence>/chroma/lock                          held by the one process that opens Chroma
<evidence>/chroma/<collection>/state.json       names the data folder and what is in it
<evidence>/chroma/<collection>/data-<random>/   Chroma's own files
<evidence>/chroma/<collection>/damaged/         the last data folder that failed its test
"""

from __future__ import annotations

import importlib.util
import re
import secrets
import shutil
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field, ValidationError

from offline_judge.domain.base import Frozen
from offline_judge.errors import StorageError
from offline_judge.retrieval.evidence.chroma_process import ChromaProcess, IndexFaultError
from offline_judge.retrieval.evidence.lock import IndexLock
from offline_judge.retrieval.evidence.selftest import check
from offline_judge.retrieval.evidence.vectors import Space, VectorTable, top

if TYPE_CHECKING:
    from numpy.typing import NDArray

STATE = "state.json"
_BATCH = 1000
_CHUNK = 1 << 20
_LISTED = 20_000  # passages let through, up to which they are all looked at one by one
_DEEPEST = 2000  # neighbours asked of Chroma at most

Told = Callable[[str], None]


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


@dataclass
class Events:
    """What happened to an index, in words, for whoever opened it."""

    told: Told = lambda _message: None
    stop: Callable[[], bool] = lambda: False
    progress: Callable[[int, int], None] = lambda _done, _of: None


class ChromaIndex:
    """Chroma over the vectors of one space; whoever holds the lock may open it.

    What is opened is tested first, in the child process that holds it. What crashes, hangs or
    answers wrongly is set aside and filled anew from SQLite; nothing is embedded again.

    Args:
        table: The vectors of record.
        folder: Where indexes lie.
        events: Whom to tell, and when to stop filling.
    """

    def __init__(self, table: VectorTable, folder: Path, events: Events | None = None) -> None:
        self._table = table
        self._events = events or Events()
        self.name = collection_name(table.space)
        self.folder = folder / self.name
        self._lock = IndexLock(folder / "lock")
        self._child: ChromaProcess | None = None
        self._state: IndexState | None = None

    def holds(self) -> int:
        """The number of the last vector in it, as its state says; 0 where that is not known."""
        with suppress(IndexFaultError):
            state = self._read()
            return state.last if state is not None else 0
        return 0

    def open(self) -> bool:
        """Open and test; False where Chroma is not installed or another process holds the lock.

        Raises:
            StorageError: the folder cannot be used.
        """
        if importlib.util.find_spec("chromadb") is None:
            self._events.told(
                "Chroma is not installed, so vectors are searched one by one; it comes with "
                'pip install "offline-llm-judge[evidence]".'
            )
            return False
        if not self._lock.acquire():
            holder = self._lock.holder()
            name = f"process {holder}" if holder else "another process"
            self._events.told(
                f"The vector index is held by {name}; exact search in SQLite answers instead."
            )
            return False
        try:
            self._open_tested()
        except (IndexFaultError, OSError) as error:
            self.close()
            raise StorageError(
                f"Chroma cannot be used: {error}", where=str(self.folder), remedy=_REMEDY
            ) from error
        return True

    def fill(self) -> int:
        """Bring the index up to date with the record; returns the vectors added.

        It stops early where it is told to, and goes on from there the next time.

        Raises:
            StorageError: Chroma failed twice over.
        """
        try:
            return self._fill()
        except IndexFaultError as error:
            self._set_aside(error)
            try:
                self._begin()
                return self._fill()
            except IndexFaultError as again:
                raise StorageError(
                    f"Chroma cannot be filled: {again}", where=str(self.folder), remedy=_REMEDY
                ) from again

    def clear(self) -> None:
        """Delete what the index holds, so that `fill` builds it whole. The lock must be held.

        Raises:
            StorageError: it cannot be deleted.
        """
        self._lock.descriptor  # noqa: B018 - asks whether the lock is held
        self._end_child()
        try:
            self._forget()
            self._begin()
        except (OSError, IndexFaultError) as error:
            raise StorageError(
                f"The vector index cannot be begun anew: {error}", where=str(self.folder)
            ) from error

    def refresh(self) -> None:
        """Nothing to do: what was stored since is looked at beside the index."""

    def nearest(
        self, query: NDArray[np.float32], count: int, allowed: NDArray[np.bool_] | None
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """The nearest `count` passages that are allowed, with cosines reckoned from SQLite.

        A filter is applied outside Chroma: few passages are all looked at; for many, Chroma is
        asked for as many more as the filter takes away.

        Raises:
            StorageError: the record cannot be read.
        """
        if allowed is not None:
            listed = np.flatnonzero(allowed)
            if len(listed) <= _LISTED:
                return self._exact(query, count, listed)
        try:
            found = self._ask(query, count, allowed)
        except IndexFaultError as error:
            self._events.told(f"Chroma failed ({error}); exact search answers instead.")
            self._end_child()
            found = None
        if found is None:
            numbers = np.array(self._table.passages(), np.int64)
            return self._exact(query, count, numbers if allowed is None else _of(numbers, allowed))
        return found

    def cosines(self, query: NDArray[np.float32], passages: NDArray[np.int64]) -> dict[int, float]:
        """Cosine of a unit vector with each of these passages that has a vector.

        Raises:
            StorageError: the record cannot be read.
        """
        numbers, vectors = self._table.of(passages.tolist())
        return {int(n): float(v) for n, v in zip(numbers, vectors @ query, strict=True)}

    def close(self) -> None:
        """End the child, say that it ended well, and let go of the lock. Safe to call twice."""
        state, child = self._state, self._child
        self._child = self._state = None
        try:
            if child is not None and child.close() and state is not None:
                with suppress(OSError):
                    files = _checksums(self.folder / state.data)
                    self._write(state.model_copy(update={"clean": True, "files": files}))
        finally:
            self._lock.release()

    def _open_tested(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            state = self._read()
            if state is None:
                self._begin()
                return
            self._compare_files(state)
            self._start(state)
            self._follow_deletions()
            assert self._child is not None and self._state is not None  # noqa: PT018 - set by _start
            check(self._child, self._table, self._state.last, self._state.recall)
        except IndexFaultError as error:
            self._set_aside(error)
            self._begin()

    def _compare_files(self, state: IndexState) -> None:
        data = self.folder / state.data
        if not data.is_dir():
            raise IndexFaultError("its folder is gone")
        if not state.clean:
            return
        found = _checksums(data)
        wrong = sorted(name for name in state.files if found.get(name) != state.files[name])
        if wrong:
            raise IndexFaultError(f"{', '.join(wrong)} changed since it was closed")

    def _begin(self) -> None:
        """An empty index in a folder of its own."""
        data = self.folder / f"data-{secrets.token_hex(4)}"
        data.mkdir(mode=0o700)
        self._start(IndexState(data=data.name, deletions=self._table.deletions()))

    def _start(self, state: IndexState) -> None:
        # Written before Chroma may touch its files: whatever kills it, it is not called clean.
        self._write(state.model_copy(update={"clean": False, "files": {}}))
        data = (self.folder / state.data).absolute()
        dimension = self._table.space.dimension
        self._child = ChromaProcess(data, self.name, dimension, self._lock.descriptor)

    def _fill(self) -> int:
        added = 0
        self._follow_deletions()
        total = self._table.count()
        while not self._events.stop():
            child, state = self._opened()
            last, passages, vectors = self._table.after(state.last, _BATCH)
            if not len(passages):
                break
            child.add(passages.tolist(), vectors)
            added += len(passages)
            self._write(state.model_copy(update={"last": last}))
            self._events.progress(self._table.count_until(last), total)
        child, state = self._opened()
        if added:
            # Nothing to compare with yet: the test says what such vectors allow.
            recall = check(child, self._table, state.last, 0.0)
            self._write(state.model_copy(update={"recall": recall}))
        return added

    def _follow_deletions(self) -> None:
        child, state = self._opened()
        deletions = self._table.deletions()
        if deletions == state.deletions:
            return
        gone = sorted(set(child.ask("ids")["ids"]) - set(self._table.passages()))
        for start in range(0, len(gone), _BATCH):
            child.ask("delete", ids=gone[start : start + _BATCH])
        self._write(state.model_copy(update={"deletions": deletions}))

    def _ask(
        self, query: NDArray[np.float32], count: int, allowed: NDArray[np.bool_] | None
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]] | None:
        """What Chroma and the vectors it does not hold yet give; None where that is too few."""
        child, state = self._opened()
        share = 1.0 if allowed is None else float(allowed.mean())
        held = int(child.ask("count")["count"])
        depth = min(held, int(2 * count / share) if allowed is not None else count)
        if depth > _DEEPEST:
            return None
        near = child.query(query[None, :], depth)[0][0] if depth else []
        numbers, vectors = self._table.of(near)
        _, late, behind = self._table.after(state.last, 10 * _LISTED)
        # What was added just before a kill may be in both.
        numbers, first = np.unique(np.concatenate([numbers, late]), return_index=True)
        vectors = np.concatenate([vectors, behind])[first]
        if allowed is not None:
            kept = (numbers < len(allowed)).nonzero()[0]
            kept = kept[allowed[numbers[kept]]]
            numbers, vectors = numbers[kept], vectors[kept]
            if len(numbers) < count and depth < held:
                return None
        return top(numbers, vectors @ query, count)

    def _exact(
        self, query: NDArray[np.float32], count: int, numbers: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        best, scores = np.empty(0, np.int64), np.empty(0, np.float32)
        for start in range(0, len(numbers), _LISTED):
            found, vectors = self._table.of(numbers[start : start + _LISTED].tolist())
            best = np.concatenate([best, found])
            scores = np.concatenate([scores, vectors @ query])
            best, scores = top(best, scores, count)
        return best, scores

    def _opened(self) -> tuple[ChromaProcess, IndexState]:
        if self._child is None or self._state is None:
            raise IndexFaultError("it is not open")
        return self._child, self._state

    def _set_aside(self, error: IndexFaultError) -> None:
        """Keep the newest damaged folder for whoever wants to look at it."""
        self._events.told(f"The vector index is damaged ({error}); it is built anew from SQLite.")
        self._end_child()
        damaged = self.folder / "damaged"
        shutil.rmtree(damaged, ignore_errors=True)
        for data in self.folder.glob("data-*"):
            shutil.rmtree(damaged, ignore_errors=True)
            data.rename(damaged)
        (self.folder / STATE).unlink(missing_ok=True)
        self._state = None

    def _forget(self) -> None:
        for data in (*self.folder.glob("data-*"), self.folder / "damaged"):
            shutil.rmtree(data, ignore_errors=True)
        (self.folder / STATE).unlink(missing_ok=True)
        self._state = None

    def _end_child(self) -> None:
        if self._child is not None:
            self._child.close()
            self._child = None

    def _read(self) -> IndexState | None:
        try:
            return IndexState.model_validate_json((self.folder / STATE).read_bytes())
        except FileNotFoundError:
            if next(self.folder.glob("data-*"), None) is not None:
                raise IndexFaultError("its state is gone") from None
            return None
        except (OSError, ValidationError) as error:
            raise IndexFaultError("its state cannot be read") from error

    def _write(self, state: IndexState) -> None:
        path = self.folder / STATE
        part = path.with_suffix(".part")
        try:
            part.write_text(state.model_dump_json(), "utf-8")
            part.replace(path)
        except OSError as error:
            raise StorageError(
                f"The vector index cannot be written: {error.strerror}", where=str(path)
            ) from error
        self._state = state


_REMEDY = "Build it anew: offline-judge evidence rebuild (nothing of record is lost)."


def collection_name(space: Space) -> str:
    """Embedder id and dimension in letters that Chroma allows."""
    name = re.sub(r"[^A-Za-z0-9.-]+", "-", space.embedder).strip("-.") or "embedder"
    # Two ids must not become one name because their other letters were taken out.
    mark = "" if name == space.embedder else f"-{zlib.crc32(space.embedder.encode()):08x}"
    return f"{name}{mark}_{space.dimension}"


def _of(numbers: NDArray[np.int64], allowed: NDArray[np.bool_]) -> NDArray[np.int64]:
    inside = numbers[numbers < len(allowed)]
    return inside[allowed[inside]]


def _checksums(folder: Path) -> dict[str, tuple[int, int]]:
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            crc = 0
            with path.open("rb") as file:
                while chunk := file.read(_CHUNK):
                    crc = zlib.crc32(chunk, crc)
            found[path.relative_to(folder).as_posix()] = (path.stat().st_size, crc)
    return found
