"""Whether a model fits this machine's memory, by the sizes its files and its header tell."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from offline_judge.errors import DoesNotFitError, GgufError
from offline_judge.weights.cards import ModelCard
from offline_judge.weights.disk import human
from offline_judge.weights.gguf import GgufHeader, read_header
from offline_judge.weights.memory import free_memory

_COMPUTE = 256 * 1024**2
"""Bytes an engine works with beside weights and cache; our guess for small batches."""
_ROOMY = 0.8
"""Share of the free memory up to which a model fits without pushing others out; our choice."""
_STEP, _LEAST_WINDOW = 256, 1024
"""Windows are suggested in such steps, and none in which no prompt has room."""
KV_BYTES = {"f16": 2.0, "q8_0": 34 / 32, "q4_0": 18 / 32}
"""Bytes a number takes in a cache of each type: blocks of 32 with a scale of two bytes."""
Q8_0 = KV_BYTES["q8_0"]


@dataclass(frozen=True)
class Fit:
    """What a model needs of this machine's memory.

    Attributes:
        needed: Bytes: weights, a key-value cache of all slots, and what the engine works with.
        free: Bytes that are free now; None where the system does not tell.
        at_least: The cache is not counted, because the weights are not here to tell its size.
        weights: Bytes of the weights; guessed where the card does not know its files yet.
        slot: Bytes of the cache of one slot.
    """

    needed: int
    free: int | None
    at_least: bool
    weights: int = 0
    slot: int = 0

    @property
    def verdict(self) -> Literal["fits", "tight", "too large", "unknown"]:
        """In a word."""
        if self.free is None:
            return "unknown"
        if self.needed > self.free:
            return "too large"
        return "fits" if self.needed <= _ROOMY * self.free else "tight"


@dataclass(frozen=True)
class Suggestion:
    """With which one change a model would fit; None where that change is not enough.

    Attributes:
        window: The largest window, in tokens of a slot.
        slots: The most slots. A lane has a slot for each stage, so fewer lanes have fewer.
        kv_cache: The type of the cache that halves it: `q8_0`.
    """

    window: int | None = None
    slots: int | None = None
    kv_cache: Literal["q8_0"] | None = None

    def __bool__(self) -> bool:
        return any((self.window, self.slots, self.kv_cache))

    def __str__(self) -> str:
        ways = [
            f"`window = {self.window}`" if self.window else "",
            f"{self.slots} slots, that is fewer `lanes`" if self.slots else "",
            f'`kv_cache = "{self.kv_cache}"`' if self.kv_cache else "",
        ]
        return ", or with ".join(way for way in ways if way)


@dataclass(frozen=True)
class _Cache:
    """What a model keeps of each token.

    Attributes:
        numbers: Keys and values of all layers.
        certain: Tokens of which surely all is kept; layers that look back no farther than a
            window keep nothing of others. None where every layer keeps all.
    """

    numbers: int
    certain: int | None = None

    def bytes_of(self, tokens: int, kv_bytes: float, *, surely: bool = False) -> int:
        if surely and self.certain is not None:
            tokens = min(tokens, self.certain)
        return int(self.numbers * tokens * kv_bytes)


def fit(
    card: ModelCard,
    path: Path | None,
    *,
    window: int,
    slots: int,
    kv_bytes: float = 2.0,
    free: int | None = None,
) -> Fit:
    """What a model needs with so many slots of so many tokens.

    Mapped weights count in full: an engine maps the file, so the system may drop its pages when
    memory gets short, but each token needs all of them, and then they are read from the disk again
    for every one. Pages that are in memory already are among the free bytes, so nothing is
    counted twice.

    Args:
        card: The model.
        path: What an engine opens, where it is here.
        window: Tokens one slot holds.
        slots: Slots of the engine.
        kv_bytes: Bytes of a number in the cache.
        free: Bytes that may be taken; asked of the system where it is None.
    """
    cache = None if path is None else _cache(path)
    weights = card.size or _guessed(card)
    slot = cache.bytes_of(min(window, card.window), kv_bytes) if cache else 0
    free = free_memory() if free is None else free
    needed = weights + _COMPUTE + slot * slots
    return Fit(needed, free, at_least=cache is None, weights=weights, slot=slot)


def check_fit(
    card: ModelCard,
    path: Path,
    *,
    window: int,
    slots: int,
    kv_bytes: float = 2.0,
    free: int | None = None,
) -> None:
    """Refuse to load what surely does not fit; arguments as of `fit`.

    Raises:
        DoesNotFitError: it does not fit; says with which setting it would.
    """
    found = fit(card, path, window=window, slots=slots, kv_bytes=kv_bytes, free=free)
    free = found.free
    if free is None or _least(card, path, found, window, slots, kv_bytes) <= free:
        return
    would = suggest_fit(card, path, window=window, slots=slots, kv_bytes=kv_bytes, free=free)
    cache = f"{human(found.slot * slots)} of cache for {slots} slots of {window:,} tokens"
    least = "at least " if found.at_least else ""
    raise DoesNotFitError(
        f"{card.name} does not fit into memory: it takes {least}{human(found.needed)} "
        f"({human(found.weights)} of weights, {cache}), and {human(free)} are free.",
        where=str(path),
        remedy=f"It would fit with {would}."
        if would
        else "End other programs, or take a smaller model or a smaller quantisation of it.",
    )


def suggest_fit(
    card: ModelCard,
    path: Path,
    *,
    window: int,
    slots: int,
    kv_bytes: float = 2.0,
    free: int | None = None,
) -> Suggestion:
    """With which one change a model that does not fit would; arguments as of `fit`."""
    cache = _cache(path)
    free = free_memory() if free is None else free
    window = min(window, card.window)
    if cache is None or free is None:
        return Suggestion()
    left = free - card.size - _COMPUTE
    token = cache.bytes_of(1, kv_bytes)
    tokens = max(0, left) // (token * slots)
    whole = max(0, left) // max(1, cache.bytes_of(window, kv_bytes, surely=True))
    smaller = cache.bytes_of(window, Q8_0, surely=True) * slots <= left
    return Suggestion(
        window=_STEP * (tokens // _STEP) if _LEAST_WINDOW <= tokens < window else None,
        slots=whole if 1 <= whole < slots else None,
        kv_cache="q8_0" if kv_bytes > Q8_0 and smaller else None,
    )


def _least(
    card: ModelCard, path: Path, found: Fit, window: int, slots: int, kv_bytes: float
) -> int:
    """Bytes that are surely needed."""
    cache = _cache(path)
    surely = cache.bytes_of(min(window, card.window), kv_bytes, surely=True) if cache else 0
    return found.needed - (found.slot - surely) * slots


def _guessed(card: ModelCard) -> int:
    """About how many bytes weights take that are not here, by what their quantisation is called."""
    match = re.search(r"\d+", card.quantisation)
    bits = float(match[0]) if match else 16.0
    # A quantisation keeps scales and some layers at more bits than its name says.
    return int(card.parameters * (bits + 0.8 if bits < 8 else bits) / 8)


def _cache(path: Path) -> _Cache | None:
    """What the model keeps of a token; None if it cannot be told."""
    told = path / "config.json" if path.is_dir() else path
    try:
        return _cache_told(told, told.stat().st_mtime_ns)
    except OSError:
        return None


@lru_cache(maxsize=64)
def _cache_told(path: Path, changed_ns: int) -> _Cache | None:
    """What a header or configuration says; a large one takes a fifth of a second to read."""
    del changed_ns  # only tells one content from a later one
    try:
        if path.suffix == ".json":
            return _cache_of_folder(json.loads(path.read_bytes()))
        return _cache_of_gguf(read_header(path))
    except (GgufError, OSError, ValueError):
        return None


def _cache_of_gguf(header: GgufHeader) -> _Cache | None:
    def number(key: str) -> int:
        value = header.metadata.get(f"{header.architecture}.{key}", 0)
        return value if isinstance(value, int) else 0

    layers, heads = number("block_count"), number("attention.head_count")
    width = number("embedding_length")
    if latent := number("attention.kv_lora_rank"):
        return _Cache(layers * (latent + number("rope.dimension_count")))
    if not (heads and layers and width):
        return None
    of_keys = number("attention.head_count_kv") or heads
    keys = number("attention.key_length") or width // heads
    values = number("attention.value_length") or keys
    # Which of its layers have the window is in no header; where only some keep a state of fixed
    # size instead of keys, the header has that state's size.
    certain = number("attention.sliding_window") or (1 if number("ssm.state_size") else 0)
    return _Cache(layers * of_keys * (keys + values), certain or None)


def _cache_of_folder(config: Any) -> _Cache | None:
    if not isinstance(config, dict):
        return None
    inner = config.get("text_config")
    config = config | inner if isinstance(inner, dict) else config

    def number(key: str) -> int:
        value = config.get(key)
        return value if isinstance(value, int) else 0

    layers, heads = number("num_hidden_layers"), number("num_attention_heads")
    width = number("hidden_size")
    if not (layers and heads and width):
        return None
    length = number("head_dim") or width // heads
    of_keys = number("num_key_value_heads") or heads
    windowed = number("sliding_window") if config.get("use_sliding_window", True) else 0
    return _Cache(layers * of_keys * 2 * length, windowed or None)
