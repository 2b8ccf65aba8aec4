"""Recall of the corpus search on a public question set.

The data folder holds `corpus-wiki/passages.jsonl` (id, title, text) and
`corpus-wiki/nq_questions.jsonl` (question, gold_passage_id): Natural Questions with the passages
that hold their answers, as in the public repository nelson-liu/lost-in-the-middle.

    python scripts/bench_search.py --data DIR
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from offline_judge.domain.evidence import Passage
from offline_judge.retrieval.corpus.build import build_corpus
from offline_judge.retrieval.corpus.documents import Document, read_documents
from offline_judge.retrieval.search.corpus import CorpusSearch

DEPTHS = (1, 3, 5)
NEEDED = "the question set of nelson-liu/lost-in-the-middle (MIT), folder corpus-wiki"


def one_passage(document: Document) -> Iterator[Passage]:
    """The whole document, so that the set's own passages are what is found."""
    yield Passage(
        id=document.id,
        document_id=document.id,
        title=document.title,
        text=document.text,
        end=len(document.text),
    )


async def recall(search: CorpusSearch, rows: list[dict[str, str]]) -> list[float]:
    """Share of the questions whose gold passage is among the first 1, 3 and 5."""
    found = [0] * len(DEPTHS)
    for row in rows:
        hits = await search.search(row["question"], limit=max(DEPTHS))
        ids = [hit.passage.id for hit in hits]
        for place, depth in enumerate(DEPTHS):
            found[place] += row["gold_passage_id"] in ids[:depth]
    return [count / len(rows) for count in found]


def main() -> None:
    parser = argparse.ArgumentParser(description="Recall of the corpus search")
    parser.add_argument("--data", default=os.environ.get("OFFLINE_JUDGE_DATA", ""), type=str)
    parser.add_argument("--limit", type=int, default=None, help="take the first N questions")
    options = parser.parse_args()
    folder = Path(options.data) / "corpus-wiki"
    if not options.data or not (folder / "passages.jsonl").is_file():
        sys.exit(f"Give --data DIR or set OFFLINE_JUDGE_DATA. It needs {NEEDED}.")
    lines = (folder / "nq_questions.jsonl").read_text("utf-8").splitlines()
    rows = [json.loads(line) for line in lines][: options.limit]
    with tempfile.TemporaryDirectory() as temporary:
        documents = read_documents(folder / "passages.jsonl")
        started = time.perf_counter()
        manifest = build_corpus("bench", documents, Path(temporary), cut=one_passage)
        built = time.perf_counter()
        shares = asyncio.run(recall(CorpusSearch("bench", Path(temporary)), rows))
        searched = time.perf_counter()
    for depth, share in zip(DEPTHS, shares, strict=True):
        print(f"recall@{depth}  {share:.3f}  n = {len(rows)}")
    each = 1000 * (searched - built) / len(rows)
    print(f"{manifest.passages} passages in {built - started:.1f} s, {each:.1f} ms a question")


if __name__ == "__main__":
    main()
