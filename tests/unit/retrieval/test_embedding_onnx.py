"""Opening ONNX embedders whose files or packages are not what they should be; pooling."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
from embedder_files import card

from offline_judge.errors import (
    BackendError,
    MissingDependencyError,
    SettingsError,
    WeightsError,
)
from offline_judge.retrieval.embedding.onnx import OnnxEmbedder, _pooled

ONNX = ("model.onnx", "tokenizer.json")
TOKENIZER = """{"model": {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"},
"pre_tokenizer": {"type": "Whitespace"}, "truncation": {"max_length": 4, "stride": 0,
"strategy": "LongestFirst", "direction": "Right"}, "padding": {"strategy": {"Fixed": 4},
"direction": "Right", "pad_to_multiple_of": null, "pad_id": 0, "pad_type_id": 0, "pad_token": "a"}}
"""  # cut and padded for another use, as such files are


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


class Session:
    """Stands in for ONNX Runtime: a token's vector is its id, one number at its place."""

    inputs: tuple[str, ...] = ("input_ids", "attention_mask")
    shape: tuple[str | int, ...] = ("batch", "sequence", 32)
    fed: ClassVar[list[dict[str, Any]]] = []

    def __init__(self, path: str, **options: Any) -> None:
        self.options = options["sess_options"]

    def get_inputs(self) -> list[SimpleNamespace]:
        return [SimpleNamespace(name=name) for name in self.inputs]

    def get_outputs(self) -> list[SimpleNamespace]:
        return [SimpleNamespace(name="states", shape=self.shape)]

    def run(self, names: None, feed: dict[str, Any]) -> list[Any]:
        self.fed.append(feed)
        return [np.eye(32, dtype=np.float32)[feed["input_ids"]]]


def _pretend(monkeypatch: pytest.MonkeyPatch, **changes: Any) -> type[Session]:
    session = type("Fake", (Session,), {"fed": [], **changes})
    monkeypatch.setattr("onnxruntime.InferenceSession", session)
    return session


def test_a_text_is_fed_alone_cut_and_under_the_names_that_the_model_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = _pretend(monkeypatch)
    embedder = OnnxEmbedder(card("onnx", ONNX), _files(tmp_path), 1)
    session.fed.clear()
    embedder.embed(["a " * 50, "a a", ""], kind="passage")

    assert [feed["input_ids"].shape for feed in session.fed] == [(1, 8), (1, 2), (1, 1)]
    assert [set(feed) for feed in session.fed] == [{"input_ids", "attention_mask"}] * 3


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"inputs": ("image",)}, "takes image, not token ids"),
        ({"inputs": ("input_ids", "position_ids")}, "input_ids, position_ids"),
        ({"shape": ("batch", 32)}, "has 2 dimensions"),
    ],
)
def test_a_model_of_another_shape_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], message: str
) -> None:
    _pretend(monkeypatch, **changes)
    with pytest.raises(WeightsError, match=message):
        OnnxEmbedder(card("onnx", ONNX), _files(tmp_path), 1)


def test_the_cards_dimension_must_be_the_models(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _pretend(monkeypatch)
    with pytest.raises(SettingsError, match="vectors of 32 numbers, but its card says 31"):
        OnnxEmbedder(card("onnx", ONNX, dimension=31), _files(tmp_path), 1)


def test_a_failure_of_the_runtime_is_an_error_of_the_backend(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from onnxruntime.capi.onnxruntime_pybind11_state import RuntimeException

    session = _pretend(monkeypatch)
    embedder = OnnxEmbedder(card("onnx", ONNX), _files(tmp_path), 1)

    def fail(self: Session, names: None, feed: dict[str, Any]) -> list[Any]:
        raise RuntimeException("no memory")

    monkeypatch.setattr(session, "run", fail)
    with pytest.raises(BackendError, match="no memory"):
        embedder.embed(["a"], kind="passage")


def test_only_tokens_of_the_text_are_pooled() -> None:
    states = np.array([[1.0, 0], [3, 4], [99, 99]], dtype=np.float32)

    assert _pooled(states, [1, 1, 0], "mean").tolist() == [2, 2]
    assert _pooled(states, [1, 1, 0], "cls").tolist() == [1, 0]
    assert _pooled(states, [1, 1, 0], "last").tolist() == [3, 4]
