"""Multilingual-e5 in 4-bit blocks, computed with numpy and without its packager's code."""

from __future__ import annotations

import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from offline_judge.errors import BackendError
from offline_judge.retrieval.embedding.e5_file import (
    BrokenFileError,
    E5File,
    Pieces,
    Sizes,
    decode_blocks,
)
from offline_judge.retrieval.embedding.vectors import (
    Kind,
    check_dimension,
    missing,
    model_text,
    unit_rows,
    unusable,
)
from offline_judge.weights.cards import ModelCard

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float32]

_SPACES = re.compile(" {2,}")


class E5Embedder:
    """A BERT encoder with mean pooling; each text is run by itself, on one thread.

    The weights of the layers are kept as floats (about 85 MB for the small model); those of the
    vocabulary stay in the file, and only the rows of a text's tokens are decoded.

    Args:
        card: Says dimension, length and prefixes.
        model: The file, already checked.
        threads: Texts worked on at once.

    Raises:
        MissingDependencyError: tokenizers or threadpoolctl is not installed.
        WeightsError: the file is not of this kind.
        SettingsError: the model gives vectors of another dimension than the card says.
    """

    def __init__(self, card: ModelCard, model: Path, threads: int) -> None:
        assert card.embedding is not None
        self._card = card
        self._how = card.embedding
        self._blas = _blas(card)
        try:
            file = E5File(model)
            self._tokenizer = _Tokenizer(file.pieces)
            self._encoder: _Encoder | None = _Encoder(file)
        except (BrokenFileError, OSError, ValueError) as error:
            raise unusable(card, model, "E5S1 model", error) from error
        self._most = min(self._how.max_tokens, file.sizes.positions)
        self._pool = ThreadPoolExecutor(threads, "embed")
        check_dimension(card, file.sizes.hidden)

    @property
    def id(self) -> str:
        """The card's name and a hash over what shapes its vectors."""
        return self._card.vectors_id

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return self._how.dimension

    def embed(self, texts: Sequence[str], *, kind: Kind) -> NDArray[np.float32]:
        """Shape (number of texts, dimension), rows of length 1, in the order of the texts.

        Raises:
            BackendError: the embedder is closed.
        """
        import numpy as np

        encoder = self._encoder
        if encoder is None:
            raise BackendError(f"The embedder {self._card.name} is closed.")

        def vector(text: str) -> Array:
            ids = self._tokenizer.ids(model_text(text, kind, self._how), self._most)
            mean: Array = encoder.states(ids).mean(axis=0)
            return mean

        rows = np.zeros((len(texts), self.dimension), dtype=np.float32)
        # Threads of a BLAS spin while they wait: beside a busy engine two were ten times slower
        # than one. So each text has one, and several texts run at once.
        with self._blas.limit(limits=1, user_api="blas"):
            for index, row in enumerate(self._pool.map(vector, texts)):
                rows[index] = row
        return unit_rows(rows)

    def close(self) -> None:
        """Let go of the model. Safe to call twice."""
        self._encoder = None
        self._pool.shutdown()


def _blas(card: ModelCard) -> Any:
    """Controls how many threads numpy's BLAS takes."""
    try:
        # The tokenizer's package is looked for here too, before anything is read.
        import tokenizers  # noqa: F401
        from threadpoolctl import ThreadpoolController
    except ModuleNotFoundError as error:
        raise missing(card, error) from error
    return ThreadpoolController()


class _Tokenizer:
    """SentencePiece's unigram tokenizer, out of the pieces in the file."""

    def __init__(self, pieces: Pieces) -> None:
        from tokenizers import Tokenizer, models, pre_tokenizers

        self._pieces = pieces
        self._tokenizer = Tokenizer(models.Unigram(pieces.vocabulary, pieces.unknown, False))
        self._tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")

    def ids(self, text: str, most: int) -> list[int]:
        """Token ids between the special ones, `most` at most with them."""
        plain = _SPACES.sub(" ", text.translate(self._pieces.replacements)).strip(" ")
        inner = self._tokenizer.encode(plain, add_special_tokens=False).ids[: most - 2]
        return [self._pieces.begin, *inner, self._pieces.end]


@dataclass(frozen=True)
class _Layer:
    """Weights of shape (in, out), biases, and scale and shift of the two layer norms."""

    attention: tuple[Array, Array]  # query, key and value side by side
    output: tuple[Array, Array]
    output_norm: tuple[Array, Array]
    up: tuple[Array, Array]
    down: tuple[Array, Array]
    down_norm: tuple[Array, Array]


class _Encoder:
    """BERT as in Devlin et al. 2019: post-norm layers, learned positions, GELU."""

    def __init__(self, file: E5File) -> None:
        self._sizes = sizes = file.sizes
        self._words = file.blocks("emb.word", sizes.hidden)
        rows = (-1, sizes.hidden)
        kind = file.floats("emb.type").reshape(rows)[0]
        self._positions = file.floats("emb.pos").reshape(rows) + kind
        self._norm = (file.floats("emb.ln.w"), file.floats("emb.ln.b"))
        self._layers = [_read_layer(file, f"l{number}", sizes) for number in range(sizes.layers)]

    def states(self, ids: Sequence[int]) -> Array:
        """The last layer's outputs, shape (tokens, hidden)."""
        states = decode_blocks(self._words[list(ids)]) + self._positions[: len(ids)]
        states = self._normed(states, self._norm)
        for layer in self._layers:
            mixed = _linear(self._attend(states, layer), layer.output)
            states = self._normed(states + mixed, layer.output_norm)
            inner = _linear(_gelu(_linear(states, layer.up)), layer.down)
            states = self._normed(states + inner, layer.down_norm)
        return states

    def _attend(self, states: Array, layer: _Layer) -> Array:
        import numpy as np

        tokens, hidden, heads = len(states), self._sizes.hidden, self._sizes.heads
        split = _linear(states, layer.attention).reshape(tokens, 3, heads, hidden // heads)
        query, key, value = split.transpose(1, 2, 0, 3)
        scores = query @ key.transpose(0, 2, 1) / np.float32(np.sqrt(hidden // heads))
        scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
        scores /= scores.sum(axis=-1, keepdims=True)
        mixed: Array = (scores @ value).transpose(1, 0, 2).reshape(tokens, hidden)
        return mixed

    def _normed(self, states: Array, norm: tuple[Array, Array]) -> Array:
        import numpy as np

        centred = states - states.mean(axis=-1, keepdims=True)
        spread = np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + self._sizes.epsilon)
        normed: Array = centred / spread * norm[0] + norm[1]
        return normed


def _read_layer(file: E5File, name: str, sizes: Sizes) -> _Layer:
    import numpy as np

    def weight(part: str, columns: int = sizes.hidden) -> Array:
        return decode_blocks(file.blocks(f"{name}.{part}.w", columns)).T

    def bias(part: str) -> Array:
        return file.floats(f"{name}.{part}.b")

    def norm(part: str) -> tuple[Array, Array]:
        return file.floats(f"{name}.{part}.w"), bias(part)

    parts = ("q", "k", "v")
    return _Layer(
        attention=(
            np.concatenate([weight(part) for part in parts], axis=1),
            np.concatenate([bias(part) for part in parts]),
        ),
        output=(weight("ao"), bias("ao")),
        output_norm=norm("aln"),
        up=(weight("fi"), bias("fi")),
        down=(weight("fo", sizes.inner), bias("fo")),
        down_norm=norm("oln"),
    )


def _linear(states: Array, weights: tuple[Array, Array]) -> Array:
    result: Array = states @ weights[0]
    result += weights[1]
    return result


def _gelu(inputs: Any) -> Array:
    """GELU in the tanh form of Hendrycks and Gimpel 2016; differs from the exact by under .001."""
    import numpy as np

    cubed = inputs * inputs * inputs
    root = np.float32(np.sqrt(2 / np.pi))
    active: Array = 0.5 * inputs * (1 + np.tanh(root * (inputs + 0.044715 * cubed)))
    return active
