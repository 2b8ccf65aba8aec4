"""Embedding what was recorded, behind whatever else goes on."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from offline_judge.errors import OfflineJudgeError, StorageError
from offline_judge.retrieval.evidence.record import Record

if TYPE_CHECKING:
    from offline_judge.protocols import Embedder
    from offline_judge.retrieval.evidence.vectors import VectorTable

OpenEmbedder = Callable[[], "Embedder | None"]
FindSpace = Callable[[], tuple[str, int] | None]

_NICE = 10
_TELL_EVERY_S = 5.0


class EmbeddingBehind:
    """A thread that embeds recorded passages, and fills Chroma where there are enough to read it.

    It begins where an earlier process left off, leaves the processor to everybody else, stops
    within a batch when it is told to, and turns every fault into a sentence: no run ends by it.

    Args:
        folder: Of the evidence record, which the thread opens for itself.
        find_space: Id and dimension of the embedder, without opening it; None where there is none.
        open_embedder: Called in the thread, once there is something to embed.
    """

    def __init__(self, folder: Path, find_space: FindSpace, open_embedder: OpenEmbedder) -> None:
        self._folder = folder
        self._find_space = find_space
        self._open_embedder = open_embedder
        self._news = threading.Event()
        self._ending = threading.Event()
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._sentences: list[str] = []
        self._thread: threading.Thread | None = None
        self._index_failed = False

    def wake(self) -> None:
        """Passages were recorded, or may have been before. Starts the thread at the first call."""
        self._news.set()
        with self._lock:  # several lanes may have recorded at once
            if self._thread is None and not self._ending.is_set():
                self._thread = threading.Thread(target=self._work, name="evidence", daemon=True)
                self._thread.start()

    def told(self) -> list[str]:
        """What there is to say since the last call, for people."""
        with self._lock:
            sentences, self._sentences = self._sentences, []
        return sentences

    def close(self, grace_s: float = 0.0) -> None:
        """Stop: within the grace what is left is still embedded, then the batch in hand ends it."""
        self._ending.set()
        self._news.set()
        if self._thread is not None:
            self._thread.join(grace_s)
            self._stopped.set()
            self._thread.join()

    def _work(self) -> None:
        with suppress(OSError, AttributeError):
            # Of this thread only, which Linux takes for a process of its own.
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
        try:
            self._loop()
        except OfflineJudgeError as error:
            self._say(f"recorded passages are found by their words only: {error}")

    def _loop(self) -> None:
        # Here and below: what takes a run a tenth of a second to import is imported in the thread.
        from offline_judge.retrieval.evidence.vectors import Space, VectorTable

        space = self._find_space()
        if space is None:
            return
        record = Record(self._folder)
        embedder = None
        try:
            table = VectorTable(record, Space(*space))
            while not self._stopped.is_set():
                self._news.clear()
                ending = self._ending.is_set()
                if embedder is None and table.missing_count():
                    embedder = self._open_embedder()
                    if embedder is None:
                        return
                if embedder is not None:
                    self._embed(table, embedder)
                self._index(table)
                # A round begun before the end may have missed what was recorded last.
                if ending:
                    return
                self._news.wait()
        finally:
            if embedder is not None:
                embedder.close()
            record.close()

    def _embed(self, table: VectorTable, embedder: Embedder) -> None:
        from offline_judge.retrieval.evidence.vectors import embed_missing

        done, last, next_time = 0, 0, time.monotonic() + _TELL_EVERY_S
        while not self._stopped.is_set():
            count, last = embed_missing(table, embedder, last)
            if not count:
                break
            done += count
            if time.monotonic() >= next_time:
                next_time = time.monotonic() + _TELL_EVERY_S
                left = table.missing_count()
                self._say(f"{done:,} recorded passages embedded, {left:,} to go")

    def _index(self, table: VectorTable) -> None:
        """Fill Chroma where it is going to be read, enough waits for it, and nobody holds it."""
        from offline_judge.retrieval.evidence.chroma import FILL_FROM, ChromaIndex, Events
        from offline_judge.retrieval.evidence.vectors import EXACT_UP_TO

        if self._index_failed or table.count() <= EXACT_UP_TO:
            return
        told: list[str] = []
        events = Events(told=told.append, stop=self._stopped.is_set)
        index = ChromaIndex(table, self._folder / "chroma", events)
        if index.waiting() < FILL_FROM:
            return
        try:
            # Why it is not opened is told to those who want to read it; here nothing is lost by it.
            if index.open():
                index.fill()
            else:
                told.clear()
        except StorageError as error:
            # The vectors are in SQLite, where exact search finds them.
            self._index_failed = True
            told.append(f"The vector index is not filled in this run: {error}")
        finally:
            index.close()
        for sentence in told:
            self._say(sentence)

    def _say(self, sentence: str) -> None:
        with self._lock:
            self._sentences.append(sentence)
