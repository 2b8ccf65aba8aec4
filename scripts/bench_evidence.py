"""Speed, memory and recall of the search in the evidence record, at a size few records reach.

Texts are drawn from a made-up vocabulary (frequent words frequent); vectors lie around those that
the embedder gives to such texts, so a question has near and far passages. Each way of finding
nearest vectors is measured in a process of its own, which does nothing else.

    python scripts/bench_evidence.py                          200,000 passages, both ways
    python scripts/bench_evidence.py --passages 5000          a quick look
    python scripts/bench_evidence.py --keep DIR               keeps the record for another time
"""

from __future__ import annotations

import argparse
import random
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from benching import bootstrap, machine
from numpy.typing import NDArray

from offline_judge.domain.evidence import Passage
from offline_judge.protocols import Embedder
from offline_judge.retrieval.evidence.chroma import ChromaIndex, Events
from offline_judge.retrieval.evidence.fused import Nearest, RecordSearch
from offline_judge.retrieval.evidence.model import Filters
from offline_judge.retrieval.evidence.places import Places
from offline_judge.retrieval.evidence.record import Record
from offline_judge.retrieval.evidence.vectors import Matrix, Space, VectorTable
from offline_judge.settings import load_settings
from offline_judge.wiring.embedders import open_embedder

WAYS = ("exact", "chroma")
SOURCES, FIRST_DAY, DAYS = 100, date(2000, 1, 1), 7300
WORDS, QUESTION_WORDS, TOPICS = 60, 8, 256
FUNCTION_WORDS = 150  # so many frequent words are no part of a question: the search takes them out
SPREAD = 1.2  # length of the noise on a vector: cosines of about .64 with its topic
BATCH, DEPTH = 5000, 5
FILTERS = {
    "no filter": Filters(),
    "source, 1 %": Filters(sources=("corpus:7",)),
    "dates, 1 %": Filters(date_from="2010-03-01", date_to="2010-05-12"),
    "dates, 5 %": Filters(date_from="2010", date_to="2010"),
    "dates, 50 %": Filters(date_from="2010"),
    "source and dates, .05 %": Filters(sources=("corpus:7",), date_from="2010", date_to="2010"),
    "all but one source": Filters(not_sources=("corpus:7",)),
}


class Texts:
    """Sentences out of a vocabulary of 20,000 words whose frequencies fall as in a language."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        letters = random.Random(0)
        self._words = [
            "".join(letters.choices("abcdefghiklmnoprstuvw", k=letters.randint(3, 10)))
            for _ in range(20_000)
        ]
        total = 0.0
        self._sums = [total := total + 1 / rank for rank in range(1, len(self._words) + 1)]

    def sentence(self, words: int, *, rarer_than: int = 0) -> str:
        """So many words, none of the most frequent ones."""
        before = self._sums[rarer_than - 1] if rarer_than else 0.0
        sums = [total - before for total in self._sums[rarer_than:]]
        return " ".join(self._random.choices(self._words[rarer_than:], cum_weights=sums, k=words))


def build(folder: Path, count: int, embedder: Embedder) -> None:
    """Record passages and vectors, whatever is not there yet."""
    record, started = Record(folder), time.perf_counter()
    with closing(record):
        table = VectorTable(record, Space(embedder.id, embedder.dimension))
        texts, noise = Texts(1), np.random.default_rng(1)
        topics = embedder.embed(questions(2, TOPICS), kind="passage")
        kept = min(table.count(), count)
        for first in range(kept, count, BATCH):
            numbers = range(first, min(first + BATCH, count))
            record.add_passages(made_up(number, texts) for number in numbers)
            vectors = noise.normal(size=(len(numbers), embedder.dimension))
            vectors *= SPREAD / np.sqrt(embedder.dimension)
            vectors += topics[noise.integers(0, TOPICS, len(numbers))]
            vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
            table.store([number + 1 for number in numbers], vectors.astype(np.float32))
        size = record.stats().size / 1e6
    taken = time.perf_counter() - started
    print(
        f"{count:,} passages, {embedder.dimension} numbers: {size:.0f} MB; "
        f"{count - kept:,} recorded now, in {taken:.0f} s"
    )


def made_up(number: int, texts: Texts) -> Passage:
    """A passage of some source and day."""
    text = texts.sentence(WORDS)
    day = FIRST_DAY + timedelta(days=number * 7919 % DAYS)
    return Passage(
        id=f"p{number}",
        document_id=f"d{number // 4}",
        title="",
        text=text,
        end=len(text),
        source=f"corpus:{number % SOURCES}",
        date=day.isoformat(),
    )


def questions(seed: int, count: int) -> list[str]:
    """Made-up questions."""
    texts = Texts(seed)
    return [texts.sentence(QUESTION_WORDS, rarer_than=FUNCTION_WORDS) + "?" for _ in range(count)]


def measure(folder: Path, way: str, asked: list[str], embedder: Embedder) -> None:
    """Speed and memory of one way, then its recall."""
    record = Record(folder)
    table = VectorTable(record, Space(embedder.id, embedder.dimension))
    started = time.perf_counter()
    index = opened_chroma(table, folder) if way == "chroma" else None
    search = RecordSearch(record, embedder, index)
    for filters in FILTERS.values():  # brings everything into memory that stays there
        search.find(asked[0], limit=DEPTH, filters=filters)
    print(f"\n{way}: opened, tested and warm in {time.perf_counter() - started:.1f} s; {machine()}")
    for name, filters in FILTERS.items():
        seconds = []
        for query in asked:
            started = time.perf_counter()
            search.find(query, limit=DEPTH, filters=filters)
            seconds.append(time.perf_counter() - started)
        print(f"  {name:24} {timed(seconds)}")
    own, child = peak("self"), sum(map(peak, children()))
    print(f"  peak memory {own:.0f} MB, and of Chroma's process {child:.0f} MB")
    if index is not None:
        tell_recall(record, table, index, embedder.embed(asked, kind="query"))
    search.close()
    record.close()


def peak(process: str) -> float:
    """Most memory that a process ever had, in MB; what it was before its `exec` does not count."""
    status = Path(f"/proc/{process}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1e3


def children() -> list[str]:
    """Ids of this process's children."""
    return [
        pid
        for path in Path("/proc/self/task").glob("*/children")
        for pid in path.read_text().split()
    ]


def opened_chroma(table: VectorTable, folder: Path) -> ChromaIndex:
    """Chroma with all vectors in it."""
    index = ChromaIndex(table, folder / "chroma", Events(told=print))
    if not index.open():
        sys.exit("Chroma cannot be opened.")
    started = time.perf_counter()
    added = index.fill()
    if added:
        print(f"{added:,} vectors added to Chroma in {time.perf_counter() - started:.0f} s")
    return index


def tell_recall(
    record: Record, table: VectorTable, index: Nearest, vectors: NDArray[np.float32]
) -> None:
    """Share of the five exact neighbours that an index finds, under each filter."""
    exact, places = Matrix(table), Places(record)
    exact.refresh()
    for name, filters in FILTERS.items():
        allowed = places.allowed(filters) if filters else None
        shares = []
        for vector in vectors:
            right = set(exact.nearest(vector, DEPTH, allowed)[0])
            if right:
                near = set(index.nearest(vector, DEPTH, allowed)[0])
                shares.append(len(right & near) / len(right))
        low, high = bootstrap(shares, statistics.fmean)
        mean = statistics.fmean(shares)
        print(f"  {name:24} recall@{DEPTH} {mean:.3f} [{low:.3f}, {high:.3f}]  n = {len(shares)}")


def timed(seconds: list[float]) -> str:
    """Median and 95th percentile with their intervals, in milliseconds."""
    found = []
    for name, share in (("p50", 0.5), ("p95", 0.95)):

        def at(values: Any, share: float = share) -> float:
            return float(1000 * np.quantile(values, share))

        low, high = bootstrap(seconds, at)
        found.append(f"{name} {at(seconds):.1f} ms [{low:.1f}, {high:.1f}]")
    return f"{'  '.join(found)}  n = {len(seconds)}"


def main() -> None:
    parser = argparse.ArgumentParser(description="Search in a large evidence record")
    parser.add_argument("--passages", type=int, default=200_000)
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--embedder", default=load_settings().embedder, help="card, or hashing")
    parser.add_argument("--keep", default=None, help="folder that keeps record and index")
    parser.add_argument("--way", choices=WAYS, action="append", help="both by default")
    parser.add_argument("--measure", default=None, help=argparse.SUPPRESS)
    options = parser.parse_args()
    embedder = open_embedder(replace(load_settings(), embedder=options.embedder))
    if embedder is None:
        sys.exit("Without an embedder there is nothing to measure.")
    if options.measure:
        asked = questions(3, options.queries)
        measure(Path(options.measure), options.way[0], asked, embedder)
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(options.keep or temporary)
        build(folder, options.passages, embedder)
        for way in options.way or WAYS:
            more = ["--queries", str(options.queries), "--embedder", options.embedder]
            command = [sys.executable, __file__, "--measure", str(folder), "--way", way, *more]
            subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
