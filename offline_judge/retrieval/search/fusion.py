"""One order out of two: nearness of vectors and scores by words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from offline_judge.retrieval.corpus.vectors import Vectors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# A passage's score is its cosine plus this times its share of the best BM25 score. Reciprocal rank
# fusion is worse than the vectors alone here: ranks forget by how much one passage is nearer.
# Measured on 2,240 questions, anything from .08 to .25 is within .003 of the best; see
# docs/figures/search.txt for the check on questions that the weight was not fitted on.
WORD_WEIGHT = 0.1
# Scores this near may be one score once they are rounded.
_SAME = 1e-4


def fused(
    vectors: Vectors,
    direction: NDArray[np.float32],
    words: Sequence[tuple[int, float]],
    count: int,
    weight: float = WORD_WEIGHT,
) -> list[tuple[int, float]]:
    """The best `count` places with their scores, and those that come as near as the last one.

    Every passage is compared, so the cost grows with their number: 12 ms for 16,000 passages of
    384 numbers, 40 ms and 300 MB mapped from disk for 200,000, on two cores.

    Args:
        vectors: The corpus.
        direction: Unit vector of the query, shape (dimension,).
        words: (place, BM25) of passages found by words, best first; others count as 0.
        count: At least 1.
        weight: What the best score by words is worth in cosine.
    """
    import numpy as np

    scores = (vectors.matrix @ direction).astype(np.float64)
    if words and words[0][1] > 0:
        places = np.array([place for place, _ in words], dtype=np.uint64)
        shares = np.array([score for _, score in words]) / words[0][1]
        scores[np.searchsorted(vectors.places, places)] += weight * shares
    last = 0.0
    if count < len(scores):
        last = float(np.partition(scores, len(scores) - count)[len(scores) - count])
        chosen = np.flatnonzero(scores >= last - _SAME)
    else:
        chosen = np.arange(len(scores))
    chosen = chosen[np.argsort(-scores[chosen], kind="stable")]
    return [(int(vectors.places[row]), float(scores[row])) for row in chosen]
