"""Weights of the user's own become cards: referred to, copied or moved, changes noticed."""

from __future__ import annotations

import json
import os
import struct
from pathlib import Path
from typing import Any

import pytest
from weights_helpers import Recorder, gguf_bytes, make_card, make_store

from offline_judge.errors import (
    DataError,
    GgufError,
    HashMismatchError,
    MissingModelError,
    OfflineJudgeError,
    UsageError,
)
from offline_judge.weights.adding import Added, AddOptions, Shelf
from offline_judge.weights.cards import ModelCard, load_cards
from offline_judge.weights.store import ModelStore

FACTS: dict[str, str | int] = {
    "general.architecture": "never-heard-of",
    "general.name": "Qwen2.5 Coder 7B",
    "general.file_type": 15,
    "general.license": "apache-2.0",
    "never-heard-of.context_length": 4096,
    "tokenizer.chat_template": "{% for m in messages %}{{ m.content }}{% endfor %}",
}
CONTENT = gguf_bytes(more=FACTS)


class Place:
    """A shelf, its store, and a folder with a user's own weights."""

    def __init__(self, folder: Path) -> None:
        self.store: ModelStore = make_store(folder)
        self.cards = folder / "data" / "cards"
        self.shelf = Shelf(self.cards, self.store)
        self.own = folder / "own"
        self.own.mkdir()

    def put(self, name: str = "My Model.Q4_K_M.gguf", content: bytes = CONTENT) -> Path:
        path = self.own / name
        path.write_bytes(content)
        return path

    def known(self) -> dict[str, ModelCard]:
        return load_cards(None, self.cards)

    def add(self, path: Path, **options: Any) -> Added:
        return self.shelf.add(path, AddOptions(**options), self.known())


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_a_card_says_what_the_header_says(place: Place) -> None:
    path = place.put()
    recorder = Recorder()
    added = place.shelf.add(path, AddOptions(), place.known(), recorder)
    card = place.known()["my-model.q4_k_m"]
    assert card == added.card
    assert (card.quantisation, card.window, card.licence) == ("Q4_K_M", 4096, "apache-2.0")
    assert (card.parameters, card.role, card.format) == (20_000, "judge", "gguf")
    assert card.family == "qwen2.5"
    assert card.quirks.system_role
    assert place.store.path(card) == path
    assert recorder.seen[-1].done == len(CONTENT)
    assert added.notes == ("its family is taken to be qwen2.5; --family says otherwise",)


def test_what_the_user_says_goes_first(place: Place) -> None:
    said = {"name": "mine", "window": 8192, "family": "f", "licence": "MIT"}
    added = place.add(place.put(), **said)
    card = added.card
    assert (card.name, card.window, card.family, card.licence) == ("mine", 8192, "f", "MIT")
    assert added.notes == ("the window is larger than the 4,096 tokens it was trained for",)


def test_what_is_not_told_is_assumed_and_said(place: Place) -> None:
    bare = {"general.architecture": "odd", "general.name": "X", "odd.context_length": 512}
    added = place.add(
        place.put("x.bin.gguf", gguf_bytes(more={**bare, "tokenizer.chat_template": ""}))
    )
    assert (added.card.family, added.card.licence) == ("odd", "unknown")
    assert added.card.quantisation == "unknown"
    assert added.card.quirks.system_role
    assert len(added.notes) == 3


def test_a_template_without_system_turn_and_with_thinking_is_noted(place: Place) -> None:
    template = (
        "{% if enable_thinking %}{% endif %}{% if messages[0].role == 'system' %}"
        "{{ raise_exception('no') }}{% endif %}{% for m in messages %}{{ m.content }}{% endfor %}"
    )
    facts = {**FACTS, "tokenizer.chat_template": template}
    card = place.add(place.put(content=gguf_bytes(more=facts))).card
    assert not card.quirks.system_role
    assert card.quirks.thinking_switch == "enable_thinking"


def test_weights_without_a_window_want_one(place: Place) -> None:
    path = place.put(content=gguf_bytes(more={"general.architecture": "odd"}))
    with pytest.raises(UsageError, match="--window N"):
        place.add(path)
    assert place.add(path, window=512).card.window == 512


def test_a_file_that_is_moved_later_is_missed_with_the_remedy(place: Place) -> None:
    path = place.put()
    card = place.add(path, name="mine").card
    path.rename(path.with_name("elsewhere.gguf"))
    assert place.store.state(card) == "absent"
    for use in (place.store.path, place.store.pull):
        with pytest.raises(MissingModelError, match="models add PATH --name mine") as caught:
            use(card)
        assert caught.value.where == str(path)
    # Added again from where it is, it is the same card.
    again = place.add(path.with_name("elsewhere.gguf"), name="mine").card
    assert place.store.path(again).name == "elsewhere.gguf"
    assert again.files[0].sha256 == card.files[0].sha256


def test_a_file_that_changes_later_is_refused_and_never_written(place: Place) -> None:
    path = place.put()
    card = place.add(path, name="mine").card
    other = gguf_bytes(more=FACTS, seed=5)
    path.write_bytes(other)
    os.utime(path, ns=(1, 1))
    for use in (place.store.path, place.store.pull):
        with pytest.raises(HashMismatchError, match="models add PATH --name mine"):
            use(card)
    assert path.read_bytes() == other
    assert not place.store.verify(card).ok
    assert place.store.path(place.add(path, name="mine").card) == path


def test_an_added_file_is_not_hashed_again_at_the_first_start(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = place.put()
    card = place.add(path).card

    def hashed(*_: object) -> str:
        raise AssertionError("hashed again")

    monkeypatch.setattr("offline_judge.weights.checking.file_sha256", hashed)
    assert place.store.path(card) == path


@pytest.mark.parametrize("keep", ["copy", "move"])
def test_weights_are_brought_into_the_store(place: Place, keep: str) -> None:
    path = place.put()
    card = place.add(path, name="mine", keep=keep).card
    assert path.exists() == (keep == "copy")
    stored = place.store.path(card)
    assert stored == place.store.folder(card) / "My-Model.Q4_K_M.gguf"
    assert stored.read_bytes() == CONTENT
    assert [each.name for each in stored.parent.iterdir()] == [stored.name]
    assert card.files[0].sources == ()


def test_removing_never_takes_a_file_that_was_referred_to(place: Place) -> None:
    path = place.put()
    card = place.add(path, name="mine").card
    gone = place.store.remove(card)
    assert (gone.files, gone.size, gone.elsewhere) == ((), 0, (path,))
    assert place.shelf.remove("mine")
    assert not place.shelf.remove("mine")
    assert path.read_bytes() == CONTENT
    assert "mine" not in place.known()


def test_a_name_that_is_taken_is_refused(place: Place) -> None:
    path = place.put()
    with pytest.raises(UsageError, match="--name NAME"):
        place.add(path, name="smollm2-135m-instruct")
    place.add(path, name="mine")
    other = place.put("other.gguf", gguf_bytes(more=FACTS, seed=7))
    with pytest.raises(UsageError, match="models rm mine"):
        place.add(other, name="mine")
    assert place.store.path(place.known()["mine"]) == path


@pytest.mark.parametrize("name", ["../up", "a b", ".hidden", "a/b"])
def test_a_name_that_is_no_name_is_refused(place: Place, name: str) -> None:
    with pytest.raises(UsageError, match="letters, digits"):
        place.add(place.put(), name=name)
    assert not place.cards.exists()


@pytest.mark.parametrize("named", [1, 2, 3])
def test_all_parts_of_a_split_file_are_added_whichever_is_named(place: Place, named: int) -> None:
    parts = [
        place.put(f"m-0000{n}-of-00003.gguf", gguf_bytes(1000 * n, more=FACTS)) for n in (1, 2, 3)
    ]
    card = place.add(parts[named - 1]).card
    assert card.name == "m"
    assert [file.lies_at for file in card.files] == parts
    assert card.parameters == 6000
    assert place.store.path(card) == parts[0]
    parts[1].unlink()
    with pytest.raises(MissingModelError):
        place.store.path(card)
    with pytest.raises(DataError, match=r"m-00002-of-00003\.gguf"):
        place.add(parts[0])


def test_a_folder_with_one_gguf_is_that(place: Place) -> None:
    path = place.put()
    assert place.add(place.own).card.files[0].lies_at == path
    place.put("second.gguf")
    with pytest.raises(DataError, match="2 GGUF models"):
        place.add(place.own, name="two")


@pytest.mark.parametrize(
    ("name", "content", "error"),
    [
        ("x.gguf", b"", GgufError),
        ("x.gguf", b"<html>", GgufError),
        ("x.gguf", CONTENT[:-1], GgufError),
        ("x.bin", b"no model", GgufError),
    ],
)
def test_what_is_no_model_is_no_card(
    place: Place, name: str, content: bytes, error: type[OfflineJudgeError]
) -> None:
    with pytest.raises(error):
        place.add(place.put(name, content))
    assert not place.cards.exists()


def test_nothing_at_the_path_is_told(place: Place) -> None:
    with pytest.raises(DataError, match="no such file"):
        place.add(place.own / "absent.gguf")
    with pytest.raises(DataError, match="no GGUF file"):
        place.add(place.own)


@pytest.mark.parametrize("name", ['quo"te\\.gguf', "日本 \x7f\t.gguf", "-dash.gguf"])
def test_odd_names_of_files_are_kept_in_the_card(place: Place, name: str) -> None:
    path = place.put(name)
    card = place.add(path, name="odd").card
    assert place.store.path(place.known()["odd"]) == path
    assert place.known()["odd"] == card


def test_a_path_that_no_card_can_name_is_refused(place: Place) -> None:
    path = Path(os.fsdecode(os.fsencode(place.own) + b"/\xff.gguf"))
    path.write_bytes(CONTENT)
    with pytest.raises(UsageError, match="no UTF-8"):
        place.add(path, name="odd")


def test_the_shipped_cards_would_read_the_same_if_they_were_written() -> None:
    from offline_judge.weights.adding import to_toml
    from offline_judge.weights.cards import read_card

    cards = {**load_cards(), "tiny": make_card(CONTENT)}
    for name, card in cards.items():
        assert read_card(to_toml(card), f"{name}.toml") == card


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
