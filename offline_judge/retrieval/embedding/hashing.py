"""The embedder that needs no weights: hashed words and pieces of words, the same everywhere."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Literal

from offline_judge.errors import BackendError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_SCHEME = 1  # goes up when the same text gets another vector
_WORD = re.compile(r"\w+")
_PIECE = 3
# From here on scripts have no spaces or glue particles to words; two characters are a word there.
_DENSE_FROM = "\u2e80"
_DENSE_PIECE = 2
_PIECE_WEIGHT = 0.5


class HashingEmbedder:
    """Signed feature hashing of words and of the character n-grams inside them.

    Two texts are near where they share words or parts of words; meaning is beyond it. Knows no
    language, needs no files, and gives a text the same vector in every process and on every
    machine. The signs follow Weinberger et al., "Feature Hashing for Large Scale Multitask
    Learning", ICML 2009: collisions cancel in the mean instead of adding up.

    Args:
        dimension: Length of a vector.
    """

    def __init__(self, dimension: int = 256) -> None:
        if dimension < 1:
            raise ValueError(f"a vector has at least one dimension, not {dimension}")
        self._dimension = dimension
        self._closed = False

    @property
    def id(self) -> str:
        """`hashing-` and the version of the scheme."""
        return f"hashing-{_SCHEME}"

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return self._dimension

    def embed(
        self, texts: Sequence[str], *, kind: Literal["query", "passage"]
    ) -> NDArray[np.float32]:
        """Shape (number of texts, dimension), rows of length 1; both kinds are treated alike.

        Raises:
            BackendError: the embedder is closed.
        """
        import numpy as np

        del kind
        if self._closed:
            raise BackendError("The embedder `hashing` is closed.")
        rows = np.zeros((len(texts), self._dimension), dtype=np.float64)
        for row, text in zip(rows, texts, strict=True):
            self._fill(row, text)
        unit: NDArray[np.float32] = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(
            np.float32
        )
        return unit

    def close(self) -> None:
        """Nothing to let go of. Safe to call twice."""
        self._closed = True

    def _fill(self, row: NDArray[np.float64], text: str) -> None:
        for feature, count in Counter(_features(text)).items():
            weight = 1.0 if feature.startswith("w") else _PIECE_WEIGHT
            self._add(row, feature, weight * (1.0 + math.log(count)))
        # No word at all, or features that cancelled out: a direction of its own keeps it a unit.
        if not row.any():
            self._add(row, "", 1.0)

    def _add(self, row: NDArray[np.float64], feature: str, weight: float) -> None:
        digest = blake2b(feature.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        number = int.from_bytes(digest, "little")
        row[(number >> 1) % self._dimension] += weight if number & 1 else -weight


def _features(text: str) -> Iterator[str]:
    """`w` and a word, `p` and a piece of one, as often as they occur."""
    for word in _WORD.findall(unicodedata.normalize("NFKC", text).casefold()):
        yield f"w{word}"
        length = _DENSE_PIECE if word >= _DENSE_FROM else _PIECE
        bounded = word if word >= _DENSE_FROM else f"^{word}$"
        for start in range(len(bounded) - length + 1):
            yield f"p{bounded[start : start + length]}"
