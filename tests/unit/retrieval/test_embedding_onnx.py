"""Opening ONNX embedders whose files or packages are not what they should be; pooling."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from embedder_files import card

from offline_judge.errors import MissingDependencyError, WeightsError
from offline_judge.retrieval.embedding.onnx import OnnxEmbedder, _pooled

ONNX = ("model.onnx", "tokenizer.json")
TOKENIZER = '{"model": {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"}}'


def _files(folder: Path, model: bytes = b"no model", tokenizer: str = TOKENIZER) -> Path:
    (folder / "tokenizer.json").write_text(tokenizer)
    path = folder / "model.onnx"
    path.write_bytes(model)
    return path


@pytest.mark.parametrize("content", [b"", b"no model", b"GGUF\x03\x00\x00\x00" + bytes(64)])
def test_a_file_of_another_kind_is_refused_with_the_remedy(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(WeightsError, match="no usable ONNX model") as seen:
        OnnxEmbedder(card("onnx", ONNX), _files(tmp_path, content), 1)

    assert seen.value.where.endswith("model.onnx")
    assert "models pull tiny" in seen.value.remedy


@pytest.mark.parametrize("content", ["", "{}", "[1, 2]", '{"model": {"type": "Other"}}'])
def test_a_tokenizer_that_is_none_is_refused(tmp_path: Path, content: str) -> None:
    with pytest.raises(WeightsError, match="no usable tokenizer") as seen:
        OnnxEmbedder(card("onnx", ONNX), _files(tmp_path, tokenizer=content), 1)

    assert seen.value.where.endswith("tokenizer.json")


@pytest.mark.parametrize("package", ["onnxruntime", "tokenizers"])
def test_a_missing_package_is_named_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingDependencyError, match=f"`{package}`") as seen:
        OnnxEmbedder(card("onnx", ONNX), _files(tmp_path), 1)

    assert "offline-llm-judge[evidence]" in seen.value.remedy


def test_only_tokens_of_the_text_are_pooled() -> None:
    states = np.array([[1.0, 0], [3, 4], [99, 99]], dtype=np.float32)

    assert _pooled(states, [1, 1, 0], "mean").tolist() == [2, 2]
    assert _pooled(states, [1, 1, 0], "cls").tolist() == [1, 0]
    assert _pooled(states, [1, 1, 0], "last").tolist() == [3, 4]
