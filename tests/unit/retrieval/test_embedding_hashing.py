"""Feature hashing: the same everywhere, near where words are shared, never without a direction."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from offline_judge.retrieval.embedding.hashing import HashingEmbedder


def test_a_text_has_the_vector_it_had_when_this_was_written() -> None:
    """Stored vectors are compared with new ones: a change here needs another scheme number."""
    embedder = HashingEmbedder()
    found = embedder.embed(["Rivers reach the sea.", "日本の首都", ""], kind="passage")
    rounded = np.round(found * 1000).astype("<i4").tobytes()

    assert embedder.id == "hashing-1"
    assert hashlib.sha256(rounded).hexdigest()[:16] == "ba5cb8353a96c616"


@pytest.mark.parametrize(
    ("text", "near", "far"),
    [
        ("Who wrote Hamlet?", "Hamlet was written by Shakespeare", "Bread is made of flour"),
        ("Quem escreveu Hamlet?", "Hamlet foi escrito por Shakespeare", "O pão leva farinha"),
        ("日本の首都はどこですか", "東京は日本の首都である", "小麦粉に水を混ぜる"),
        ("international", "internationally", "bread"),
        ("\uff26\uff35\uff2c\uff2c width", "full", "narrow column"),
    ],
)
def test_shared_words_and_pieces_bring_texts_near(text: str, near: str, far: str) -> None:
    asked, close, away = HashingEmbedder().embed([text, near, far], kind="query")

    assert asked @ close > asked @ away + 0.2


@pytest.mark.parametrize("dimension", [1, 2, 256, 1000])
def test_every_text_has_a_direction_in_every_dimension(dimension: int) -> None:
    texts = ["", "!!!", "a", "a b c d e f g", "\ud800", "x" * 5000]
    found = HashingEmbedder(dimension).embed(texts, kind="passage")

    assert found.shape == (6, dimension)
    assert np.linalg.norm(found, axis=1) == pytest.approx(np.ones(6), abs=1e-5)


def test_no_dimension_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        HashingEmbedder(0)
