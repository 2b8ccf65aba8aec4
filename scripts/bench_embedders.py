"""Passages a core-second of the embedders whose weights are here, alone and in batches.

Speed is what a processor does in its own time, so other work on the machine disturbs it little.
The passages are those of the corpus that comes with the program. An interval resamples calls.

    python scripts/bench_embedders.py [--embedder NAME ...] [--passages N]
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benching import bootstrap, machine

from offline_judge.errors import MissingError
from offline_judge.protocols import Embedder
from offline_judge.retrieval.corpus.factbook import factbook_documents
from offline_judge.retrieval.corpus.passages import cut_document
from offline_judge.settings import Settings, load_settings
from offline_judge.wiring.embedders import open_embedder

NAMES = ("hashing", "all-minilm-l6-v2-int8", "multilingual-e5-small-q4")
BATCHES = (1, 32)


def passages(count: int) -> list[str]:
    """Passages spread evenly over the shipped corpus."""
    texts = [
        f"{passage.title}. {passage.text}"
        for document in factbook_documents()
        for passage in cut_document(document)
    ]
    return texts[:: max(1, len(texts) // count)][:count]


def timed(
    embedder: Embedder, texts: list[str], batch: int
) -> tuple[list[tuple[int, float]], np.ndarray]:
    """Passages and core-seconds of each call, and all vectors."""
    calls, found = [], []
    for start in range(0, len(texts), batch):
        part = texts[start : start + batch]
        begun = time.process_time()
        found.append(embedder.embed(part, kind="passage"))
        calls.append((len(part), time.process_time() - begun))
    return calls, np.concatenate(found)


def rate(calls: Sequence[tuple[int, float]]) -> float:
    """Passages a core-second."""
    return sum(count for count, _ in calls) / sum(seconds for _, seconds in calls)


def report(name: str, settings: Settings, texts: list[str]) -> None:
    """One line for each size of batch, and how far the vectors of the two differ."""
    embedder = open_embedder(replace(settings, embedder=name, threads=1))
    if embedder is None:
        return
    embedder.embed(texts[:1], kind="passage")
    vectors = []
    for batch in BATCHES:
        calls, found = timed(embedder, texts, batch)
        vectors.append(found)
        low, high = bootstrap(calls, rate)
        figure = f"{rate(calls):8.1f} [{low:.1f}, {high:.1f}]"
        print(f"{name:26} batch {batch:2}  {figure}  n = {len(calls)} calls")
    least = float((vectors[0] * vectors[1]).sum(axis=1).min())
    print(f"{name:26} least cosine between the two batches {least:.6f}")
    embedder.close()


def main() -> None:
    parser = argparse.ArgumentParser(description="Passages a core-second of the embedders")
    parser.add_argument("--embedder", action="append", help="by default those in packages")
    parser.add_argument("--passages", type=int, default=256)
    options = parser.parse_args()
    texts = passages(options.passages)
    words = sum(len(text.split()) for text in texts) / len(texts)
    print(f"{len(texts)} passages of {words:.0f} words on average, one thread")
    for name in options.embedder or NAMES:
        try:
            report(name, load_settings(), texts)
        except MissingError as error:
            print(f"{name:26} {error}")
    print(machine())


if __name__ == "__main__":
    main()
