"""The multilingual embedder on a tiny file of its kind: tokens, arithmetic, damage."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from embedder_files import HIDDEN, PIECES, POSITIONS, card, e5s1, write_e5s1

from offline_judge.errors import (
    BackendError,
    MissingDependencyError,
    SettingsError,
    WeightsError,
)
from offline_judge.retrieval.embedding.e5 import E5Embedder
from offline_judge.retrieval.embedding.e5_file import BrokenFileError, E5File, decode_blocks


def _open(folder: Path, data: bytes | None = None, dimension: int = HIDDEN) -> E5Embedder:
    return E5Embedder(card(dimension=dimension), write_e5s1(folder, data), threads=2)


def _spelled(embedder: E5Embedder, text: str) -> list[str]:
    return [PIECES[token] for token in embedder._tokenizer.ids(text, 100)]


def test_blocks_hold_a_scale_and_two_numbers_a_byte() -> None:
    block = np.zeros((1, 1, 18), np.uint8)
    block[0, 0, :2] = np.array([0.5], "<f2").view(np.uint8)
    block[0, 0, 2], block[0, 0, 17] = 0x1F, 0x80  # low half first, then the high ones

    numbers = decode_blocks(block)[0]

    assert numbers.shape == (32,)
    assert (numbers[0], numbers[16]) == ((15 - 8) / 2, (1 - 8) / 2)
    assert (numbers[15], numbers[31]) == (-4.0, 0.0)


def test_text_becomes_the_best_pieces_after_its_replacements(tmp_path: Path) -> None:
    embedder = _open(tmp_path)

    assert _spelled(embedder, "sea  river ") == ["<s>", "▁sea", "▁river", "</s>"]
    assert _spelled(embedder, "Ⅱ") == ["<s>", "▁", "a", "b", "</s>"]
    assert _spelled(embedder, "") == ["<s>", "</s>"]


def test_no_text_spells_a_special_token(tmp_path: Path) -> None:
    embedder = _open(tmp_path)
    for word in ("</s>", "<s>", "<mask>", " 2", "\0"):
        assert not {"<mask>", "<pad>"} & set(_spelled(embedder, word))
        assert _spelled(embedder, word)[1:-1].count("</s>") == 0
        assert _spelled(embedder, word)[1:-1].count("<s>") == 0


def test_the_arithmetic_is_that_of_a_bert_written_out(tmp_path: Path) -> None:
    """Against a second spelling: loops over heads and tokens, exact GELU, float64."""
    embedder = _open(tmp_path)
    file = E5File(tmp_path / "m.bin")
    ids = embedder._tokenizer.ids("sea river ab", 100)

    found = embedder.embed(["sea river ab"], kind="passage")[0]

    expected = _plain_bert(file, ids).mean(axis=0)
    assert found @ (expected / np.linalg.norm(expected)) == pytest.approx(1, abs=1e-5)


def test_a_text_is_cut_at_the_cards_tokens_and_the_models_positions(tmp_path: Path) -> None:
    embedder = _open(tmp_path)
    assert POSITIONS > 8
    seven, eight, many = embedder.embed(["sea " * 5, "sea " * 6, "sea " * 900], kind="passage")

    assert np.abs(eight - many).max() < 1e-6
    assert np.abs(seven - many).max() > 1e-5


@pytest.mark.parametrize("share", [0.0, 0.0005, 0.02, 0.05, 0.1, 0.5, 0.999])
def test_a_file_that_is_cut_short_is_refused_with_the_remedy(tmp_path: Path, share: float) -> None:
    whole = e5s1()
    with pytest.raises(WeightsError, match="no usable E5S1 model") as seen:
        _open(tmp_path, whole[: int(len(whole) * share)])

    assert "models pull tiny" in seen.value.remedy


def test_another_kind_of_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match="does not begin with E5S1"):
        _open(tmp_path, b"GGUF" + bytes(100))


def test_a_tensor_that_lies_outside_the_file_is_refused(tmp_path: Path) -> None:
    file = E5File(write_e5s1(tmp_path))
    with pytest.raises(BrokenFileError, match="no whole tensor"):
        file.floats("l9.q.b")
    with pytest.raises(BrokenFileError, match="no whole tensor"):
        file.floats("emb.word")


def test_weights_that_are_not_numbers_give_an_error_and_no_vector(tmp_path: Path) -> None:
    data = e5s1()
    # The last tensor is a layer norm's shift.
    broken = data[:-4] + np.array([np.nan], "<f4").tobytes()
    embedder = _open(tmp_path, broken)
    with pytest.raises(BackendError, match="without a direction"):
        embedder.embed(["sea"], kind="passage")


def test_the_cards_dimension_must_be_the_files(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=f"vectors of {HIDDEN} numbers, but its card says 33"):
        _open(tmp_path, dimension=33)


def test_a_missing_package_is_named_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(MissingDependencyError, match="`tokenizers`") as seen:
        _open(tmp_path)

    assert "offline-llm-judge[evidence]" in seen.value.remedy


def _plain_bert(file: E5File, ids: list[int]) -> Any:
    erf = np.vectorize(math.erf)
    sizes = file.sizes
    width = sizes.hidden // sizes.heads

    def weight(name: str, columns: int) -> Any:
        return decode_blocks(file.blocks(f"{name}.w", columns)).astype(np.float64)

    def linear(x: Any, name: str, columns: int = sizes.hidden) -> Any:
        return np.array([weight(name, columns) @ row for row in x]) + file.floats(f"{name}.b")

    def norm(x: Any, name: str) -> Any:
        centred = x - x.mean(1, keepdims=True)
        return centred / x.std(1, keepdims=True) * file.floats(f"{name}.w") + file.floats(
            f"{name}.b"
        )

    x = decode_blocks(file.blocks("emb.word", sizes.hidden))[ids].astype(np.float64)
    x += file.floats("emb.pos").reshape(-1, sizes.hidden)[: len(ids)] + file.floats("emb.type")
    x = norm(x, "emb.ln")
    for layer in range(sizes.layers):
        q, k, v = (linear(x, f"l{layer}.{part}") for part in "qkv")
        heads = []
        for head in range(sizes.heads):
            part = slice(head * width, (head + 1) * width)
            scores = np.exp(q[:, part] @ k[:, part].T / np.sqrt(width))
            heads.append(scores / scores.sum(1, keepdims=True) @ v[:, part])
        x = norm(x + linear(np.concatenate(heads, axis=1), f"l{layer}.ao"), f"l{layer}.aln")
        inner = linear(x, f"l{layer}.fi")
        inner = inner * (1 + erf(inner / np.sqrt(2))) / 2
        x = norm(x + linear(inner, f"l{layer}.fo", sizes.inner), f"l{layer}.oln")
    return np.asarray(x)
