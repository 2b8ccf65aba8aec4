"""The GGUF embedder over a child of a few lines: cutting, crashes, answers that break protocol."""

from __future__ import annotations

import struct
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from offline_judge.backends import engine as engine_module
from offline_judge.backends.embed import GgufEmbedder
from offline_judge.errors import (
    BackendCrashedError,
    BackendResponseError,
    BackendStartError,
    SettingsError,
)
from offline_judge.weights.cards import Embedding, ModelCard, ModelFile

FAKE = Path(__file__).with_name("fake_embedding_engine.py")
# A whole file without tensors or keys, which is all that is looked at before the engine starts.
GGUF = b"GGUF" + struct.pack("<IQQ", 3, 0, 0) + bytes(8)
Maker = Callable[..., GgufEmbedder]


def _card(dimension: int = 8) -> ModelCard:
    how = Embedding(
        format="gguf", dimension=dimension, max_tokens=8, pooling="last", query_prefix="Q:"
    )
    file = ModelFile(name="m.gguf", size=1, sha256="0" * 64)
    return ModelCard(
        name="fake",
        family="f",
        role="embedder",
        parameters=1,
        quantisation="q",
        window=512,
        licence="MIT",
        files=(file,),
        embedding=how,
    )


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Maker]:
    monkeypatch.setattr(engine_module, "_FIRST_BACK_OFF_S", 0.001)
    made: list[GgufEmbedder] = []

    def maker(model: str = "good", dimension: int = 8, script: Path = FAKE) -> GgufEmbedder:
        path = tmp_path / f"{model}.gguf"
        path.write_bytes(GGUF)
        embedder = GgufEmbedder(_card(dimension), path, 1, script=script)
        made.append(embedder)
        return embedder

    yield maker
    for embedder in made:
        embedder.close()


def _tokens(vector: np.ndarray[tuple[int], np.dtype[np.float32]]) -> list[int]:
    """The fake's tokens, from a vector that was made one long and begins with 1."""
    return [round(float(number / vector[0])) for number in vector]


def test_queries_have_the_prefix_and_passages_have_not(make: Maker) -> None:
    embedder = make()
    query = embedder.embed(["ab"], kind="query")[0]
    passage = embedder.embed(["ab"], kind="passage")[0]

    assert _tokens(query)[:6] == [1, ord("Q"), ord(":"), ord("a"), ord("b"), 2]
    assert _tokens(passage)[:4] == [1, ord("a"), ord("b"), 2]


def test_a_text_that_is_too_long_keeps_the_token_that_ends_it(make: Maker) -> None:
    tokens = _tokens(make().embed(["abcdefghijk"], kind="passage")[0])

    assert tokens == [1, *map(ord, "abcdef"), 2]


def test_an_empty_text_is_embedded_where_the_model_has_no_special_tokens(make: Maker) -> None:
    vector = make("bare").embed([""], kind="passage")[0]

    assert vector[0] > 0
    assert np.linalg.norm(vector) == pytest.approx(1)


def test_an_engine_that_dies_is_started_again_and_the_text_embedded(make: Maker) -> None:
    embedder = make("dies")
    found = embedder.embed(["ab", "a!", "abc"], kind="passage")

    assert found.shape == (3, 8)
    assert _tokens(found[1])[:4] == [1, ord("a"), ord("!"), 2]
    assert embedder.engine.restarts == 1


def test_an_engine_that_dies_of_a_text_again_and_again_ends_the_call(make: Maker) -> None:
    embedder = make("always")
    with pytest.raises(BackendCrashedError, match="died while it answered"):
        embedder.embed(["ab", "a!"], kind="passage")

    assert embedder.embed(["ab"], kind="passage").shape == (1, 8)


def test_another_dimension_than_the_cards_is_refused_and_nothing_is_left_running(
    make: Maker,
) -> None:
    with pytest.raises(SettingsError, match="vectors of 8 numbers, but its card says 9") as seen:
        make(dimension=9)

    assert "dimension = 8" in seen.value.remedy
    assert not [thread for thread in threading.enumerate() if thread.name == "embed"]


def test_an_answer_without_a_vector_is_said_to_be_one(make: Maker) -> None:
    with pytest.raises(BackendResponseError, match="holds no vector"):
        make("vague")


def test_an_engine_that_does_not_start_leaves_nothing_running(make: Maker, tmp_path: Path) -> None:
    script = tmp_path / "ends.py"
    script.write_text("import sys; sys.exit(3)")
    with pytest.raises(BackendStartError, match="exit status 3"):
        make(script=script)

    assert not [thread for thread in threading.enumerate() if thread.name == "embed"]
