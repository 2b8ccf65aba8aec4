"""Whether a model fits this machine's memory, by the sizes its file and its header tell."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from offline_judge.errors import GgufError
from offline_judge.weights.cards import ModelCard
from offline_judge.weights.gguf import GgufHeader, read_header

_MEMORY = Path("/proc/meminfo")
_COMPUTE = 256 * 1024**2
"""Bytes an engine works with beside weights and cache; our guess for small batches."""
_ROOMY = 0.8
"""Share of the free memory up to which a model fits without pushing others out; our choice."""


@dataclass(frozen=True)
class Fit:
    """What a model needs of this machine's memory.

    Attributes:
        needed: Bytes: weights, a key-value cache of all slots, and what the engine works with.
        free: Bytes that are free now; None where the system does not tell.
        at_least: The cache is not counted, because the weights are not here to tell its size.
    """

    needed: int
    free: int | None
    at_least: bool

    @property
    def verdict(self) -> Literal["fits", "tight", "too large", "unknown"]:
        """In a word."""
        if self.free is None:
            return "unknown"
        if self.needed > self.free:
            return "too large"
        return "fits" if self.needed <= _ROOMY * self.free else "tight"


def fit(card: ModelCard, path: Path | None, *, window: int, slots: int) -> Fit:
    """What a model needs with so many slots of so many tokens.

    Args:
        card: The model.
        path: Its first file, where it is here.
        window: Tokens one slot holds.
        slots: Slots of the engine.
    """
    cache = None if path is None else _cache_bytes(path)
    needed = card.size + _COMPUTE + (cache or 0) * slots * min(window, card.window)
    return Fit(needed, free_memory(), at_least=cache is None)


def free_memory(table: Path = _MEMORY) -> int | None:
    """Bytes that programs may take without swapping; None where the system does not tell."""
    try:
        lines = table.read_text("ascii").splitlines()
    except OSError:
        return None
    for line in lines:
        name, _, value = line.partition(":")
        if name == "MemAvailable":
            return int(value.split()[0]) * 1024
    return None


def _cache_bytes(path: Path) -> int | None:
    """Bytes of keys and values a token takes, at two bytes a number; None if it cannot be told."""
    try:
        header = read_header(path)
    except (GgufError, OSError):
        return None
    heads, layers = _number(header, "attention.head_count"), _number(header, "block_count")
    width = _number(header, "embedding_length")
    if not (heads and layers and width):
        return None
    of_keys = _number(header, "attention.head_count_kv") or heads
    length = _number(header, "attention.key_length") or width // heads
    return 2 * 2 * layers * of_keys * length


def _number(header: GgufHeader, key: str) -> int:
    value = header.metadata.get(f"{header.architecture}.{key}", 0)
    return value if isinstance(value, int) else 0
