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

from offline_judge.errors import StorageError
from offline_judge.retrieval.evidence.chroma_process import ChromaProcess, IndexFaultError
from offline_judge.retrieval.evidence.chroma_state import IndexState, StateFile, checksums
from offline_judge.retrieval.evidence.lock import IndexLock
from offline_judge.retrieval.evidence.selftest import check
from offline_judge.retrieval.evidence.vectors import Matrix, Space, VectorTable, top

if TYPE_CHECKING:
    from numpy.typing import NDArray

FILL_FROM = 1000
"""Vectors that wait for an index before it is filled; fewer are looked at one by one beside it."""

_BATCH = 1000
_LISTED = 20_000  # passages let through, up to which they are all looked at one by one
_DEEPEST = 2000  # neighbours asked of Chroma at most
_ROOM = 256 << 20  # bytes that any file of Chroma's may take, and
_ROOM_TIMES = 8  # so many times the bytes of the vectors: a damaged index would fill the disk

Told = Callable[[str], None]


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
        self._file = StateFile(self.folder)
        self._late: tuple[int, Matrix] | None = None

    def holds(self) -> int:
        """The number of the last vector in it, as its state says; 0 where that is not known."""
        with suppress(IndexFaultError):
            state = self._seen()
            return state.last if state is not None else 0
        return 0

    def fault(self) -> str:
        """What is wrong with its files, as far as that is seen without opening it; else empty."""
        try:
            self._seen()
        except IndexFaultError as error:
            return str(error)
        return ""

    def waiting(self) -> int:
        """How many vectors of record it does not hold.

        Raises:
            StorageError: the record cannot be read.
        """
        return self._table.count() - self._table.count_until(self.holds())

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
        except BaseException:
            self.close()
            raise
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
            try:
                self._set_aside(error)
                self._begin()
                return self._fill()
            except (IndexFaultError, OSError) as again:
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
        """Nothing to do: `nearest` itself looks at what was stored since, beside the index."""

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
        self._child = self._state = self._late = None
        try:
            if child is not None and child.close() and state is not None:
                # Without this the next holder tests more, and that is all.
                with suppress(OSError, StorageError):
                    files = checksums(self.folder / state.data)
                    self._file.write(state.model_copy(update={"clean": True, "files": files}))
        finally:
            self._lock.release()

    def _seen(self) -> IndexState | None:
        state = self._file.read()
        if state is not None:
            self._file.check_there(state)
        return state

    def _open_tested(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            state = self._file.read()
            if state is None:
                self._begin()
                return
            self._file.compare_files(state)
            self._start(state)
            self._follow_deletions()
            assert self._child is not None and self._state is not None  # noqa: PT018 - set by _start
            check(self._child, self._table, self._state.last, self._state.recall)
        except IndexFaultError as error:
            self._set_aside(error)
            self._begin()

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
        room = _ROOM + _ROOM_TIMES * 4 * dimension * self._table.count()
        self._child = ChromaProcess(data, self.name, dimension, self._lock.descriptor, room)

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
        cosines = vectors @ query
        if allowed is not None:
            kept = np.flatnonzero(numbers < len(allowed))
            kept = kept[allowed[numbers[kept]]]
            numbers, cosines = numbers[kept], cosines[kept]
        late, more = self._not_held(state.last).nearest(query, count, allowed)
        # What was added just before a kill may be in both.
        numbers, first = np.unique(np.concatenate([numbers, late]), return_index=True)
        if allowed is not None and len(numbers) < count and depth < held:
            return None
        return top(numbers, np.concatenate([cosines, more])[first], count)

    def _not_held(self, last: int) -> Matrix:
        """The vectors stored since the index was filled, by whichever process."""
        if self._late is None or self._late[0] != last:
            self._late = last, Matrix(self._table, last)
        self._late[1].refresh()
        return self._late[1]

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
        self._file.remove()
        self._state = None

    def _forget(self) -> None:
        for data in (*self.folder.glob("data-*"), self.folder / "damaged"):
            shutil.rmtree(data, ignore_errors=True)
        self._file.remove()
        self._state = None

    def _end_child(self) -> None:
        if self._child is not None:
            self._child.close()
            self._child = None

    def _write(self, state: IndexState) -> None:
        self._file.write(state)
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
