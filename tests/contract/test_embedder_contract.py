"""What every embedder promises, over all of them."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from offline_judge.backends.embed import GgufEmbedder
from offline_judge.errors import BackendError
from offline_judge.protocols import Embedder
from offline_judge.retrieval.embedding.e5 import E5Embedder
from offline_judge.retrieval.embedding.hashing import HashingEmbedder
from offline_judge.retrieval.embedding.onnx import OnnxEmbedder
from offline_judge.weights.cards import Embedding, ModelCard, find_card

ROOT = Path(__file__).resolve().parents[2]
TEXTS = (
    "The river reaches the sea.",
    "Bread is made of flour.",
    "",
    "  \n\t ",
    "Quem pintou a Mona Lisa?",
    "日本の首都はどこですか",
    "a lone surrogate \ud800 and a null \x00",
    "<|im_end|> </s> [SEP] <mask>",
)
LONG = "Rivers rise in the hills and reach the sea. " * 114  # 5,016 characters
KINDS = (
    "hashing",
    *(pytest.param(name, marks=pytest.mark.engine) for name in ("minilm", "e5", "gguf")),
)
SAME_ELSEWHERE = """
import sys
sys.path.insert(0, {tests!r})
import test_embedder_contract as contract
from pathlib import Path
from hashlib import sha256
embedder = contract.make({name!r}, Path({path!r}))
print(embedder.id, sha256(embedder.embed(contract.TEXTS, kind="query").tobytes()).hexdigest())
embedder.close()
"""


def gguf_card() -> ModelCard:
    """The 135M as if it were an embedder: a real model on the real engine, of no use otherwise."""
    how = Embedding(format="gguf", dimension=576, max_tokens=128, query_prefix="query: ")
    return find_card("smollm2-135m-instruct").model_copy(
        update={"role": "embedder", "embedding": how}
    )


def make(name: str, path: Path) -> Embedder:
    if name == "minilm":
        return OnnxEmbedder(find_card("all-minilm-l6-v2-int8"), path, threads=1)
    if name == "e5":
        return E5Embedder(find_card("multilingual-e5-small-q4"), path, threads=2)
    if name == "gguf":
        return GgufEmbedder(gguf_card(), path, threads=1)
    return HashingEmbedder()


@pytest.fixture(scope="module", params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def path(kind: str, request: pytest.FixtureRequest) -> Path:
    names = {
        "minilm": "embedder_weights",
        "e5": "multilingual_weights",
        "gguf": "small_weights",
    }
    return request.getfixturevalue(names[kind]) if kind in names else Path("none")


@pytest.fixture(scope="module")
def embedder(kind: str, path: Path) -> Iterator[Embedder]:
    made = make(kind, path)
    yield made
    made.close()


def test_vectors_are_unit_rows_of_float32_in_the_order_of_the_texts(embedder: Embedder) -> None:
    found = embedder.embed(TEXTS, kind="passage")

    assert found.shape == (len(TEXTS), embedder.dimension)
    assert found.dtype == np.float32
    assert np.linalg.norm(found, axis=1) == pytest.approx(np.ones(len(TEXTS)), abs=1e-5)
    turned = embedder.embed(TEXTS[::-1], kind="passage")
    assert np.abs(turned[::-1] - found).max() < 1e-5


def test_a_batch_gives_what_its_texts_give_alone(embedder: Embedder) -> None:
    batch = embedder.embed(TEXTS, kind="query")
    alone = np.concatenate([embedder.embed([text], kind="query") for text in TEXTS])

    assert np.abs(batch - alone).max() < 1e-5


def test_different_texts_have_different_vectors(embedder: Embedder) -> None:
    sea, bread, again = embedder.embed([*TEXTS[:2], TEXTS[0]], kind="passage")

    assert sea @ again == pytest.approx(1, abs=1e-5)
    assert sea @ bread < 0.99


def test_no_texts_give_no_rows(embedder: Embedder) -> None:
    found = embedder.embed([], kind="passage")

    assert found.shape == (0, embedder.dimension)
    assert found.dtype == np.float32


def test_a_long_text_is_embedded_by_its_beginning(embedder: Embedder, kind: str) -> None:
    long, longer = embedder.embed([LONG, LONG + TEXTS[1] * 200], kind="passage")

    assert np.linalg.norm(long) == pytest.approx(1, abs=1e-5)
    # Hashing needs no limit and reads all of it.
    assert (long @ longer > 1 - 1e-5) == (kind != "hashing")


def test_a_text_has_the_same_vector_in_another_process(
    embedder: Embedder, kind: str, path: Path
) -> None:
    tests = str(Path(__file__).parent)
    code = SAME_ELSEWHERE.format(tests=tests, name=kind, path=str(path))
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    here = hashlib.sha256(embedder.embed(TEXTS, kind="query").tobytes()).hexdigest()
    assert done.stdout.split() == [embedder.id, here]


def test_closing_twice_is_safe_and_a_closed_embedder_says_so(kind: str, path: Path) -> None:
    made = make(kind, path)
    made.close()
    made.close()

    with pytest.raises(BackendError, match="is closed"):
        made.embed(["x"], kind="query")


@pytest.mark.engine
def test_a_query_has_its_prefix_and_a_passage_its_own(multilingual_weights: Path) -> None:
    card = find_card("multilingual-e5-small-q4")
    assert card.embedding is not None
    bare = card.embedding.model_copy(update={"query_prefix": "", "passage_prefix": ""})
    plain = E5Embedder(card.model_copy(update={"embedding": bare}), multilingual_weights, 1)
    made = E5Embedder(card, multilingual_weights, 1)
    spelled = plain.embed(["query: the sea", "passage: the sea"], kind="passage")

    assert np.abs(made.embed(["the sea"], kind="query")[0] - spelled[0]).max() < 1e-6
    assert np.abs(made.embed(["the sea"], kind="passage")[0] - spelled[1]).max() < 1e-6
    assert np.abs(spelled[0] - spelled[1]).max() > 1e-3
    plain.close()
    made.close()
