"""What `bench_search.py` asks beside the plain recall: other weights, and many more passages."""

from __future__ import annotations

import random
import re
import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from offline_judge.protocols import Embedder
from offline_judge.retrieval.corpus import analysis
from offline_judge.retrieval.corpus.documents import Document
from offline_judge.retrieval.corpus.index import open_index, stored_fields
from offline_judge.retrieval.corpus.store import read_manifest
from offline_judge.retrieval.corpus.vectors import open_vectors
from offline_judge.retrieval.search.fusion import WORD_WEIGHT, fused

WEIGHTS = (0.0, 0.02, 0.05, 0.08, 0.1, 0.15, 0.2, 0.25, 0.3, 0.5)
DEPTHS = (1, 3, 5)
SPLITS = 100
# As in the search itself.
WORD_DEPTH = 1000

_TOKEN = re.compile(r"\w+")
# The commonest words stay; each other one may become one that is about as common.
_KEPT_WORDS = 300
_REPLACED_SHARE = 0.3
_SPREAD = 0.1


def fit_weights(folder: Path, rows: Sequence[Mapping[str, str]], embedder: Embedder) -> None:
    """Print recall for each weight, and what a weight fitted on one half gives on the other."""
    ranks = _ranks(folder, rows, embedder)
    every = range(len(rows))
    for weight, found in ranks.items():
        shares = "  ".join(f"@{depth} {_recall(found, every, depth):.3f}" for depth in DEPTHS)
        print(f"weight {weight:<4} {shares}")
    chosen: Counter[float] = Counter()
    fitted: dict[int, list[float]] = {depth: [] for depth in DEPTHS}
    shipped: dict[int, list[float]] = {depth: [] for depth in DEPTHS}
    for seed in range(SPLITS):
        order = random.Random(seed).sample(every, len(rows))
        half = len(rows) // 2
        best = max(WEIGHTS, key=lambda w: sum(_recall(ranks[w], order[:half], d) for d in DEPTHS))
        chosen[best] += 1
        for depth in DEPTHS:
            fitted[depth].append(_recall(ranks[best], order[half:], depth))
            shipped[depth].append(_recall(ranks[WORD_WEIGHT], order[half:], depth))
    for name, found_by in (("fitted on the other half", fitted), (f"{WORD_WEIGHT}", shipped)):
        means = "  ".join(
            f"@{depth} {statistics.fmean(values):.3f} (least {min(values):.3f})"
            for depth, values in found_by.items()
        )
        print(f"on questions of a held-out half, weight {name}: {means}, {SPLITS} splits")
    print(f"weights chosen: {dict(sorted(chosen.items()))}")


def _recall(ranks: Sequence[int], chosen: Sequence[int], depth: int) -> float:
    return sum(0 < ranks[number] <= depth for number in chosen) / len(chosen)


def _ranks(
    folder: Path, rows: Sequence[Mapping[str, str]], embedder: Embedder
) -> dict[float, list[int]]:
    """Weight to the rank of each question's gold passage, 0 where it is not among the first."""
    manifest = read_manifest(folder.name, folder.parent)
    searcher = open_index(folder / manifest.index).searcher()
    vectors = open_vectors(folder, manifest, embedder.id)
    analyzer = analysis.english()
    ids: dict[int, str] = {}
    found: dict[float, list[int]] = {weight: [] for weight in WEIGHTS}
    for row in rows:
        query = analysis.build_query(row["question"], analyzer)
        hits = searcher.search(query, limit=WORD_DEPTH, count=False).hits if query else []
        places = {((a.segment_ord << 32) | a.doc): a for _, a in hits}
        words = [(place, score) for place, (score, _) in zip(places, hits, strict=True)]
        direction = embedder.embed([row["question"]], kind="query")[0]
        for weight in WEIGHTS:
            best = fused(vectors, direction, words, max(DEPTHS), weight)[: max(DEPTHS)]
            at = 0
            for rank, (place, _) in enumerate(best, 1):
                if place not in ids:
                    ids[place] = _id(searcher, place)
                if ids[place] == row["gold_passage_id"]:
                    at = rank
            found[weight].append(at)
    return found


def _id(searcher: object, place: int) -> str:
    import tantivy

    assert isinstance(searcher, tantivy.Searcher)
    address = tantivy.DocAddress(place >> 32, place & 0xFFFFFFFF)
    return str(stored_fields(searcher, address)["id"])


def varied(documents: Sequence[Document], count: int) -> Iterator[Document]:
    """`count` documents, none like another: the given ones, then copies with other words in them.

    A word becomes one that is about as common, and a number another number, so that the lists of
    passages that a word leads to grow as they do in a real corpus.
    """
    counted = Counter(word for d in documents for word in _TOKEN.findall(d.text))
    ranked = [word for word, _ in counted.most_common()]
    places = {word: place for place, word in enumerate(ranked)}
    for number in range(count):
        copy, which = divmod(number, len(documents))
        document = documents[which]
        if not copy:
            yield document
            continue
        if not which:
            other = _Other(ranked, places, copy)
        yield replace(
            document,
            id=f"{document.id}-{copy}",
            title=_TOKEN.sub(other, document.title),
            text=_TOKEN.sub(other, document.text),
        )


class _Other:
    """Replaces words, each alike throughout one copy."""

    def __init__(self, ranked: Sequence[str], places: Mapping[str, int], copy: int) -> None:
        self._ranked = ranked
        self._places = places
        self._random = random.Random(copy)
        self._known: dict[str, str] = {}

    def __call__(self, match: re.Match[str]) -> str:
        word = match.group()
        if word not in self._known:
            self._known[word] = self._choose(word)
        return self._known[word]

    def _choose(self, word: str) -> str:
        if word.isdecimal():
            return str(self._random.randrange(10 ** len(word)))
        place = self._places.get(word, 0)
        if place < _KEPT_WORDS or self._random.random() > _REPLACED_SHARE:
            return word
        moved = round(place * (1 + self._random.uniform(-_SPREAD, _SPREAD)))
        return self._ranked[min(max(moved, _KEPT_WORDS), len(self._ranked) - 1)]
