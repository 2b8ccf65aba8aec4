"""Weights of the user's own become cards: referred to, copied or moved, changes noticed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from own_weights import CONTENT, FACTS, Place
from weights_helpers import Recorder, gguf_bytes, make_card

from offline_judge.errors import (
    DataError,
    GgufError,
    HashMismatchError,
    MissingModelError,
    OfflineJudgeError,
    UsageError,
)
from offline_judge.weights.adding import AddOptions
from offline_judge.weights.cards import load_cards


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
    bare: dict[str, str | int] = {
        "general.architecture": "odd",
        "general.name": "X",
        "odd.context_length": 512,
    }
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
