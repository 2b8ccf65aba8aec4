"""Recall and speed of the corpus search on a public question set.

The data folder holds `corpus-wiki/passages.jsonl` (id, title, text) and
`corpus-wiki/nq_questions.jsonl` (question, gold_passage_id): Natural Questions with the passages
that hold their answers, as in the public repository nelson-liu/lost-in-the-middle.

    python scripts/bench_search.py --data DIR                 recall, by words and fused
    python scripts/bench_search.py --data DIR --million       speed in a million passages, by words
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench_search_sets import fit_weights, varied
from benching import machine

from offline_judge.domain.evidence import Passage
from offline_judge.errors import OfflineJudgeError
from offline_judge.protocols import Embedder
from offline_judge.retrieval.corpus.build import build_corpus
from offline_judge.retrieval.corpus.documents import Document, read_documents
from offline_judge.retrieval.corpus.embedding import embed_corpus
from offline_judge.retrieval.search.corpus import CorpusSearch
from offline_judge.settings import load_settings
from offline_judge.wiring.embedders import open_embedder

DEPTHS = (1, 3, 5)
MILLION = 1_000_000
NEEDED = "the question set of nelson-liu/lost-in-the-middle (MIT), folder corpus-wiki"
Rows = Sequence[dict[str, str]]


def one_passage(document: Document) -> Iterator[Passage]:
    """The whole document, so that the set's own passages are what is found."""
    yield Passage(
        id=document.id,
        document_id=document.id,
        title=document.title,
        text=document.text,
        end=len(document.text),
    )


async def ranks(search: CorpusSearch, rows: Rows) -> tuple[list[int], list[float]]:
    """Rank of each question's gold passage, 0 where it is not among the first; seconds of each."""
    found, seconds = [], []
    for row in rows:
        started = time.perf_counter()
        hits = await search.search(row["question"], limit=max(DEPTHS))
        seconds.append(time.perf_counter() - started)
        at = [hit.rank for hit in hits if hit.passage.id == row["gold_passage_id"]]
        found.append(at[0] if at else 0)
    return found, seconds


def told(way: str, found: Sequence[int]) -> None:
    shares = (sum(0 < rank <= depth for rank in found) / len(found) for depth in DEPTHS)
    figures = "  ".join(f"@{d} {share:.3f}" for d, share in zip(DEPTHS, shares, strict=True))
    print(f"recall {way:24} {figures}  n = {len(found)}")


def timed(seconds: Sequence[float]) -> str:
    cuts = statistics.quantiles(seconds, n=20)
    return f"{1000 * statistics.median(seconds):.1f} ms p50, {1000 * cuts[18]:.1f} ms p95"


def recall(folder: Path, rows: Rows, corpora: Path, embedder: Embedder | None) -> None:
    """Recall by words; and where there is an embedder, fused, and what other weights would give."""
    started = time.perf_counter()
    documents = read_documents(folder / "passages.jsonl")
    manifest = build_corpus("bench", documents, corpora, cut=one_passage)
    print(f"{manifest.passages:,} passages in {time.perf_counter() - started:.1f} s; {machine()}")
    found, seconds = asyncio.run(ranks(CorpusSearch("bench", corpora), rows))
    told("by words", found)
    print(f"by words {timed(seconds)}")
    if embedder is None:
        return
    started = time.perf_counter()
    embed_corpus("bench", corpora, embedder)
    print(f"embedded by {embedder.id} in {time.perf_counter() - started:.0f} s, what was missing")
    search = CorpusSearch("bench", corpora, embedder)
    found, seconds = asyncio.run(ranks(search, rows))
    told(f"fused, weight {search.identity()['word_weight']}", found)
    print(f"fused {timed(seconds)}, embedding of the question included")
    fit_weights(corpora / "bench", rows, embedder)


def speed(folder: Path, rows: Rows, corpora: Path, count: int) -> None:
    """Build a corpus of `count` passages and ask it all questions."""
    started = time.perf_counter()
    documents = varied(list(read_documents(folder / "passages.jsonl")), count)
    manifest = build_corpus("million", documents, corpora, cut=one_passage)
    built = time.perf_counter() - started
    size = sum(path.stat().st_size for path in (corpora / "million").rglob("*") if path.is_file())
    search = CorpusSearch("million", corpora)
    started = time.perf_counter()
    search.identity()
    opened = time.perf_counter() - started
    found, seconds = asyncio.run(ranks(search, rows))
    print(f"{manifest.passages:,} passages in {built:.0f} s, {size / 1e6:.0f} MB; {machine()}")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    print(f"opened in {opened:.1f} s; {timed(seconds)}; peak memory with the build {peak:.0f} MB")
    told("by words, million", found)


def the_embedder(name: str) -> Embedder | None:
    try:
        return open_embedder(replace(load_settings(), embedder=name))
    except OfflineJudgeError as error:
        print(f"by words only: {error}")
        return None


def main() -> None:
    parser = argparse.ArgumentParser(description="Recall and speed of the corpus search")
    parser.add_argument("--data", default=os.environ.get("OFFLINE_JUDGE_DATA", ""), type=str)
    parser.add_argument("--limit", type=int, default=None, help="take the first N questions")
    parser.add_argument("--embedder", default=load_settings().embedder, help="card, or none")
    parser.add_argument("--keep", default=None, help="folder that keeps index and vectors")
    parser.add_argument("--million", action="store_true", help="speed in a million passages")
    parser.add_argument("--passages", type=int, default=MILLION, help="in place of a million")
    options = parser.parse_args()
    folder = Path(options.data) / "corpus-wiki"
    if not options.data or not (folder / "passages.jsonl").is_file():
        sys.exit(f"Give --data DIR or set OFFLINE_JUDGE_DATA. It needs {NEEDED}.")
    lines = (folder / "nq_questions.jsonl").read_text("utf-8").splitlines()
    rows = [json.loads(line) for line in lines][: options.limit]
    with tempfile.TemporaryDirectory() as temporary:
        corpora = Path(options.keep or temporary)
        if options.million:
            speed(folder, rows, corpora, options.passages)
        else:
            recall(folder, rows, corpora, the_embedder(options.embedder))


if __name__ == "__main__":
    main()
