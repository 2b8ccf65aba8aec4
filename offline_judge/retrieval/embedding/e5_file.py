"""Reads files of the kind E5S1: a BERT in 4-bit blocks together with its tokenizer.

Layout, little-endian: magic `E5S1`, version, sizes; the pieces of a unigram tokenizer with their
scores; a table of replacements of characters; a directory of tensors with absolute offsets. A
weight matrix is rows of blocks of 32 numbers, each a float16 scale and 16 bytes of two 4-bit
numbers less 8, the low halves first (Q4_0 of GGML).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_MAGIC = b"E5S1"
_BLOCK = 32
_BLOCK_BYTES = 18
_FLOATS, _BLOCKS = 0, 1


class BrokenFileError(Exception):
    """The file is not of this kind, or is cut short. Never leaves this folder."""


@dataclass(frozen=True)
class Sizes:
    """The model's sizes; `epsilon` is that of its layer norms."""

    hidden: int
    layers: int
    heads: int
    inner: int
    vocabulary: int
    positions: int
    epsilon: float


@dataclass(frozen=True)
class Pieces:
    """The tokenizer: pieces with their scores, special ids, replacements of characters."""

    vocabulary: list[tuple[str, float]]
    begin: int
    end: int
    unknown: int
    replacements: dict[int, str]


class E5File:
    """An open file, read through a memory map.

    Raises:
        BrokenFileError: it is of another kind, or ends too early.
        OSError: it cannot be read.
    """

    def __init__(self, path: Path) -> None:
        import numpy as np

        self._data: Any = np.memmap(path, dtype=np.uint8, mode="r")
        self._at = 0
        if bytes(self._take(4)) != _MAGIC:
            raise BrokenFileError("it does not begin with E5S1")
        self._numbers("I")  # version
        *sizes, epsilon, block = self._numbers("7ifi")
        if block != _BLOCK:
            raise BrokenFileError(f"its blocks hold {block} numbers, not {_BLOCK}")
        hidden, layers, heads, inner, vocabulary, positions, _ = sizes
        self.sizes = Sizes(hidden, layers, heads, inner, vocabulary, positions, epsilon)
        self.pieces = self._read_pieces()
        self._tensors = self._read_directory()

    def floats(self, name: str) -> NDArray[np.float32]:
        """A tensor of floats, flat.

        Raises:
            BrokenFileError: there is none of this name and kind.
        """
        import numpy as np

        raw = self._tensor(name, _FLOATS)
        return np.frombuffer(raw.tobytes(), dtype="<f4").astype(np.float32)

    def blocks(self, name: str, columns: int) -> NDArray[np.uint8]:
        """A matrix as it is stored: shape (rows, blocks in a row, 18), not copied.

        Raises:
            BrokenFileError: there is none of this name and kind.
        """
        raw = self._tensor(name, _BLOCKS)
        wide = columns // _BLOCK
        if not wide or raw.size % (wide * _BLOCK_BYTES):
            raise BrokenFileError(f"`{name}` does not have rows of {columns} numbers")
        shaped: NDArray[np.uint8] = raw.reshape(-1, wide, _BLOCK_BYTES)
        return shaped

    def _read_pieces(self) -> Pieces:
        count, begin, end, pad, unknown, length = self._numbers("5iQ")
        if count < 1:
            raise BrokenFileError("it has no tokenizer")
        offsets = self._array("<u4", count + 1)
        scores = self._array("<f4", count)
        text = bytes(self._take(length))
        spans = zip(offsets[:-1].tolist(), offsets[1:].tolist(), scores.tolist(), strict=True)
        # Special tokens are those without a score; with a space in it no text can spell one.
        vocabulary = [
            (text[a:b].decode("utf-8", "replace") if score else f" {index}", score)
            for index, (a, b, score) in enumerate(spans)
        ]
        if not all(0 <= special < count for special in (begin, end, pad, unknown)):
            raise BrokenFileError("a special token lies outside the vocabulary")
        return Pieces(vocabulary, begin, end, unknown, self._read_replacements())

    def _read_replacements(self) -> dict[int, str]:
        count, _ = self._numbers("iI")
        found = {}
        for _ in range(count):
            character, length = self._numbers("IB")
            found[character] = "".join(map(chr, self._numbers(f"{length}I")))
        return found

    def _read_directory(self) -> dict[str, tuple[int, int, int]]:
        """Name to kind, offset and bytes."""
        (count,) = self._numbers("i")
        found = {}
        for _ in range(count):
            (length,) = self._numbers("H")
            name = bytes(self._take(length)).decode("ascii", "replace")
            kind, _, offset, size = self._numbers("BIQQ")
            found[name] = (kind, offset, size)
        return found

    def _tensor(self, name: str, kind: int) -> Any:
        found, offset, size = self._tensors.get(name, (-1, 0, 0))
        if found != kind or offset + size > self._data.size:
            raise BrokenFileError(f"it has no whole tensor `{name}`")
        return self._data[offset : offset + size]

    def _numbers(self, layout: str) -> tuple[Any, ...]:
        return struct.unpack("<" + layout, bytes(self._take(struct.calcsize("<" + layout))))

    def _array(self, kind: str, count: int) -> Any:
        import numpy as np

        return np.frombuffer(bytes(self._take(4 * count)), dtype=kind)

    def _take(self, size: int) -> Any:
        taken = self._data[self._at : self._at + size]
        if taken.size != size:
            raise BrokenFileError("it ends too early")
        self._at += size
        return taken


def decode_blocks(blocks: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Shape (rows, columns) of blocks of shape (rows, blocks in a row, 18)."""
    import numpy as np

    scales = np.ascontiguousarray(blocks[..., :2]).view("<f2").astype(np.float32)
    packed = blocks[..., 2:]
    numbers = np.concatenate([packed & 15, packed >> 4], axis=-1).astype(np.float32) - 8
    return (numbers * scales).reshape(len(blocks), -1)
