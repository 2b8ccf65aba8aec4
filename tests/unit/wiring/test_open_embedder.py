"""Settings to an embedder: which one, and what is said where it cannot be had."""

from __future__ import annotations

import hashlib
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from offline_judge.errors import (
    HashMismatchError,
    MissingModelError,
    SettingsError,
    UsageError,
    WeightsError,
)
from offline_judge.settings import Settings
from offline_judge.wiring.embedders import embedder_space, open_embedder
from offline_judge.wiring.engines import make_engine

CARD = """
name = "mine"
family = "mine"
role = "embedder"
parameters = 1000
quantisation = "none"
window = 512
licence = "MIT"

[embedding]
format = "{form}"
dimension = 32
max_tokens = 64

[[files]]
name = "{file}"
size = {size}
sha256 = "{sha}"
"""


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    (tmp_path / "cards").mkdir()
    return Settings(
        embedder="mine",
        data_dir=str(tmp_path / "data"),
        cache_dir=str(tmp_path / "cache"),
        cards_dir=str(tmp_path / "cards"),
        threads=1,
    )


def _place(settings: Settings, content: bytes, form: str = "e5s1", file: str = "m.bin") -> Path:
    """A card of the user's own with the right hash, and the file beside it."""
    sha = hashlib.sha256(content).hexdigest()
    text = CARD.format(form=form, file=file, size=len(content), sha=sha)
    (Path(settings.cards_dir) / "mine.toml").write_text(text)
    path = settings.models_path / "mine" / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def test_none_is_no_embedder_and_hashing_needs_no_files(settings: Settings) -> None:
    assert open_embedder(_named(settings, "none")) is None
    hashing = open_embedder(_named(settings, "hashing"))
    assert hashing is not None
    assert hashing.id == "hashing-1"


def test_absent_weights_are_missing_with_the_command_that_fetches_them(settings: Settings) -> None:
    with pytest.raises(MissingModelError) as seen:
        open_embedder(_named(settings, "all-minilm-l6-v2-int8"))

    assert "offline-judge models pull all-minilm-l6-v2-int8" in seen.value.remedy


def test_a_judge_is_no_embedder(settings: Settings) -> None:
    with pytest.raises(UsageError, match="is no embedder but a judge"):
        open_embedder(_named(settings, "qwen2.5-coder-1.5b-instruct"))


def test_an_embedder_is_no_judge(settings: Settings) -> None:
    with pytest.raises(UsageError, match="is an embedder and cannot judge"):
        make_engine(replace(settings, cards_dir="", judge="all-minilm-l6-v2-int8"), 1)


def test_a_name_that_comes_close_is_offered(settings: Settings) -> None:
    with pytest.raises(MissingModelError) as seen:
        open_embedder(_named(settings, "all-minilm-l6-v2"))

    assert "all-minilm-l6-v2-int8" in seen.value.remedy


def test_a_file_that_is_not_the_cards_is_never_opened(settings: Settings) -> None:
    path = _place(settings, b"E5S1 and so on")
    path.write_bytes(b"E5S1 and so ON")
    with pytest.raises(HashMismatchError, match="not the one that the card mine names"):
        open_embedder(settings)


def test_a_file_is_hashed_again_only_when_it_was_touched(settings: Settings) -> None:
    path = _place(settings, b"no model at all")
    with pytest.raises(WeightsError, match="no usable E5S1 model"):
        open_embedder(settings)
    seen = path.stat()
    # The same size and time of change: the note of the first check is believed.
    path.write_bytes(b"NO model at all")
    os.utime(path, ns=(seen.st_atime_ns, seen.st_mtime_ns))
    with pytest.raises(WeightsError, match="no usable E5S1 model"):
        open_embedder(settings)
    os.utime(path, ns=(seen.st_atime_ns, seen.st_mtime_ns + 1))
    with pytest.raises(HashMismatchError):
        open_embedder(settings)


def test_a_right_hash_does_not_make_a_wrong_kind_of_file_usable(settings: Settings) -> None:
    _place(settings, b"text, not weights", "gguf", "m.gguf")
    with pytest.raises(WeightsError) as seen:
        open_embedder(settings)

    assert seen.value.where.endswith("m.gguf")
    assert "models pull mine" in seen.value.remedy


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"form": "onnx"}, "a second file called tokenizer.json"),
        ({"form": "gguf"}, r"is called \*.gguf"),
        ({"form": "other"}, "embedding.format"),
    ],
)
def test_a_card_that_cannot_work_is_refused_when_it_is_read(
    settings: Settings, change: dict[str, Any], message: str
) -> None:
    _place(settings, b"x", **change)
    with pytest.raises(SettingsError, match=message):
        open_embedder(settings)


def _named(settings: Settings, embedder: str) -> Settings:
    return replace(settings, embedder=embedder, cards_dir="")


def test_the_space_of_an_embedder_is_known_without_its_weights(settings: Settings) -> None:
    for name in ("all-minilm-l6-v2-int8", "multilingual-e5-small-q4"):
        space = embedder_space(replace(settings, embedder=name))
        assert space is not None
        assert space[0].startswith(name)
        assert space[1] == 384
    hashing = replace(settings, embedder="hashing")
    opened = open_embedder(hashing)
    assert opened is not None
    assert embedder_space(hashing) == (opened.id, opened.dimension)
    for name in ("none", "what"):
        assert embedder_space(replace(settings, embedder=name)) is None
    with pytest.raises(UsageError, match="is no embedder"):
        embedder_space(replace(settings, embedder="qwen2.5-coder-0.5b-instruct"))
