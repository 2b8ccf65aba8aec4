"""Folders in Hugging Face format become cards, for engines that open folders."""

from __future__ import annotations

import json
import os
import struct
from pathlib import Path

import pytest
from own_weights import Place

from offline_judge.errors import DataError, HashMismatchError


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def _safetensors(path: Path, *shape: int, kind: str = "BF16", cut: int = 0) -> None:
    size = 2
    for each in shape:
        size *= each
    header = json.dumps(
        {
            "__metadata__": {"format": "pt"},
            "w": {"dtype": kind, "shape": shape, "data_offsets": [0, size]},
        }
    ).encode()
    path.write_bytes((struct.pack("<Q", len(header)) + header + b"\0" * size)[: -cut or None])


CONFIG = {
    "model_type": "never-heard-of",
    "max_position_embeddings": 2048,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "hidden_size": 64,
}


@pytest.fixture
def folder(place: Place) -> Path:
    folder = place.own / "SmolLM2-HF"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(CONFIG))
    (folder / "tokenizer.json").write_text("{}")
    template = "{% for m in messages %}{{ m.content }}{% endfor %}"
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": template}))
    (folder / "README.md").write_text("---\nlicense: other\nlicense_name: mrl\n---\nWords")
    (folder / "modeling.py").write_text("raise SystemExit")
    _safetensors(folder / "model.safetensors", 10, 20)
    return folder


def test_a_folder_in_hugging_face_format_is_a_card_of_that_format(
    place: Place, folder: Path
) -> None:
    added = place.add(folder)
    card = place.known()["smollm2-hf"]
    assert card == added.card
    assert (card.format, card.window, card.parameters) == ("hf", 2048, 200)
    assert (card.quantisation, card.licence, card.family) == ("BF16", "mrl", "smollm2")
    assert [file.name for file in card.files] == [
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
    ]
    assert place.store.path(card) == folder
    assert place.store.state(card) == "present"
    assert place.store.verify(card).ok


def test_a_changed_file_of_a_folder_is_noticed(place: Place, folder: Path) -> None:
    card = place.add(folder).card
    (folder / "tokenizer.json").write_text("[]")
    os.utime(folder / "tokenizer.json", ns=(1, 1))
    with pytest.raises(HashMismatchError) as caught:
        place.store.path(card)
    assert caught.value.where == str(folder / "tokenizer.json")


def test_a_folder_is_copied_whole(place: Place, folder: Path) -> None:
    card = place.add(folder, keep="copy").card
    stored = place.store.path(card)
    assert stored == place.store.folder(card)
    assert not (stored / "modeling.py").exists()
    assert (stored / "model.safetensors").is_file()


def test_shards_are_added_up_and_a_missing_one_is_named(place: Place, folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    names = [f"model-0000{n}-of-00002.safetensors" for n in (1, 2)]
    for name in names:
        _safetensors(folder / name, 100)
    # The same weights under another name, as some publishers have them.
    _safetensors(folder / "consolidated.safetensors", 200)
    index = {"weight_map": {"a": names[0], "b": names[1]}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    card = place.add(folder).card
    assert card.parameters == 200
    assert "consolidated.safetensors" not in [file.name for file in card.files]
    (folder / names[1]).unlink()
    with pytest.raises(DataError, match=names[1]):
        place.add(folder)


def test_weights_that_lie_several_in_a_number_are_counted_one_by_one(
    place: Place, folder: Path
) -> None:
    config = {**CONFIG, "quantization_config": {"quant_method": "awq", "bits": 4}}
    (folder / "config.json").write_text(json.dumps(config))
    _safetensors(folder / "model.safetensors", 100, kind="I32")
    card = place.add(folder).card
    assert (card.parameters, card.quantisation) == (800, "awq")


@pytest.mark.parametrize("missing", ["tokenizer.json", "model.safetensors"])
def test_a_folder_that_lacks_something_is_no_model(
    place: Place, folder: Path, missing: str
) -> None:
    (folder / missing).unlink()
    with pytest.raises(DataError, match=r"no tokenizer|no \*\.safetensors"):
        place.add(folder)


@pytest.mark.parametrize("damage", ["cut", "empty header", "huge header", "no JSON", "odd JSON"])
def test_damaged_safetensors_are_refused(place: Place, folder: Path, damage: str) -> None:
    path = folder / "model.safetensors"
    if damage == "cut":
        _safetensors(path, 10, 20, cut=1)
    else:
        path.write_bytes(
            {
                "empty header": b"\0" * 16,
                "huge header": struct.pack("<Q", 2**63) + b"{}",
                "no JSON": struct.pack("<Q", 2) + b"{:",
                "odd JSON": struct.pack("<Q", 9) + b'{"w": []}',
            }[damage]
        )
    with pytest.raises(DataError, match="damaged or cut short"):
        place.add(folder)


def test_a_configuration_that_is_no_json_is_named(place: Place, folder: Path) -> None:
    (folder / "config.json").write_text("{")
    with pytest.raises(DataError, match="no JSON"):
        place.add(folder)
