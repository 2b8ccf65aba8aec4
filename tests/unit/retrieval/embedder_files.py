"""Small files and cards of embedders for tests: a whole E5S1 model in a few kilobytes."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np

from offline_judge.weights.cards import Embedding, ModelCard, ModelFile

HIDDEN, LAYERS, HEADS, INNER, POSITIONS = 32, 2, 2, 64, 16
PIECES = ("<s>", "<pad>", "</s>", "<unk>", "▁", "▁sea", "▁river", "a", "b", "e", "r", "s", "<mask>")
SPECIAL = (0, 1, 2, 3, 12)
SHA = "0" * 64


def card(
    form: str = "e5s1", names: tuple[str, ...] = ("m.bin",), dimension: int = HIDDEN
) -> ModelCard:
    """A card of an embedder; nothing checks its hashes unless a store does."""
    return ModelCard.model_validate(
        {
            "name": "tiny",
            "family": "f",
            "role": "embedder",
            "parameters": 1,
            "quantisation": "q",
            "window": 512,
            "licence": "MIT",
            "files": [ModelFile(name=name, size=1, sha256=SHA) for name in names],
            "embedding": Embedding.model_validate(
                {"format": form, "dimension": dimension, "max_tokens": 8}
            ),
        }
    )


def e5s1(seed: int = 0) -> bytes:
    """A file of that kind with random weights."""
    draw = np.random.default_rng(seed)
    head = b"E5S1" + struct.pack("<I", 1)
    head += struct.pack("<7ifi", HIDDEN, LAYERS, HEADS, INNER, len(PIECES), POSITIONS, 1, 1e-12, 32)
    head += _tokenizer()
    tensors = _tensors(draw)
    directory_size = sum(2 + len(name) + 21 for name in tensors)
    offset = len(head) + 4 + directory_size
    directory, body = struct.pack("<i", len(tensors)), b""
    for name, (kind, data) in tensors.items():
        directory += struct.pack("<H", len(name)) + name.encode()
        directory += struct.pack("<BIQQ", kind, 0, offset + len(body), len(data))
        body += data
    return head + directory + body


def write_e5s1(folder: Path, data: bytes | None = None) -> Path:
    path = folder / "m.bin"
    path.write_bytes(e5s1() if data is None else data)
    return path


def _tokenizer() -> bytes:
    raw = [piece.encode() for piece in PIECES]
    ends = np.cumsum([0, *map(len, raw)]).astype("<u4")
    scores = [0.0 if at in SPECIAL else -1.0 - at / 10 for at in range(len(PIECES))]
    replaced = struct.pack("<IB2I", ord("Ⅱ"), 2, ord("a"), ord("b"))
    return (
        struct.pack("<5iQ", len(PIECES), 0, 2, 1, 3, int(ends[-1]))
        + ends.tobytes()
        + np.array(scores, "<f4").tobytes()
        + b"".join(raw)
        + struct.pack("<iI", 1, len(replaced))
        + replaced
    )


def _tensors(draw: np.random.Generator) -> dict[str, tuple[int, bytes]]:
    def floats(count: int, scale: float = 0.1) -> tuple[int, bytes]:
        return 0, (draw.standard_normal(count) * scale).astype("<f4").tobytes()

    def ones(count: int) -> tuple[int, bytes]:
        return 0, np.ones(count, "<f4").tobytes()

    def blocks(rows: int, columns: int) -> tuple[int, bytes]:
        count = rows * columns // 32
        scales = np.full((count, 1), 0.05, "<f2").view(np.uint8)
        packed = draw.integers(0, 256, (count, 16), dtype=np.uint8)
        return 1, np.concatenate([scales, packed], axis=1).tobytes()

    tensors = {
        "emb.word": blocks(len(PIECES), HIDDEN),
        "emb.pos": floats(POSITIONS * HIDDEN),
        "emb.type": floats(HIDDEN),
        "emb.ln.w": ones(HIDDEN),
        "emb.ln.b": floats(HIDDEN),
    }
    shapes = {"q": (HIDDEN, HIDDEN), "k": (HIDDEN, HIDDEN), "v": (HIDDEN, HIDDEN)}
    shapes |= {"ao": (HIDDEN, HIDDEN), "fi": (INNER, HIDDEN), "fo": (HIDDEN, INNER)}
    for layer in range(LAYERS):
        for part, (rows, columns) in shapes.items():
            tensors[f"l{layer}.{part}.w"] = blocks(rows, columns)
            tensors[f"l{layer}.{part}.b"] = floats(rows)
        for part in ("aln", "oln"):
            tensors[f"l{layer}.{part}.w"] = ones(HIDDEN)
            tensors[f"l{layer}.{part}.b"] = floats(HIDDEN)
    return tensors
