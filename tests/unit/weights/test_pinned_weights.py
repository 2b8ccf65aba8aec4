"""Cards by hub id: the hub is asked once, what it listed is pinned, and the pin holds."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from listing_hub import ListingHub, hub_card, listing
from weights_helpers import Recorder, gguf_bytes, kept, make_store

from offline_judge.errors import DownloadError, MissingModelError, WeightsError
from offline_judge.weights.pins import PIN
from offline_judge.weights.store import ModelStore

ONE, TWO = gguf_bytes(seed=1), gguf_bytes(30_000, seed=2)
FILES = {"m-Q4_K_M.gguf": ONE, "m-Q8_0.gguf": TWO, "README.md": b"words"}
PARTS = {f"big/m-Q4_K_M-0000{n}-of-00003.gguf": gguf_bytes(seed=n) for n in (3, 1, 2)}
CARD = hub_card()


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
def hub() -> Iterator[ListingHub]:
    with listing(ListingHub(**FILES)) as served:
        yield served


@pytest.fixture
def store(hub: ListingHub, tmp_path: Path) -> ModelStore:
    return make_store(tmp_path, hub.environ())


def test_a_card_without_a_pin_is_absent_and_says_how_to_get_it(store: ModelStore) -> None:
    assert store.resolved(CARD) == CARD
    assert store.state(CARD) == "absent"
    assert not store.verify(CARD).ok
    with pytest.raises(MissingModelError, match="offline-judge models pull listed"):
        store.path(CARD)


def test_the_first_pull_pins_the_commit_with_names_sizes_and_hashes(
    store: ModelStore, hub: ListingHub
) -> None:
    path = store.pull(CARD)
    assert path.read_bytes() == ONE
    assert hub.downloads() == [f"/owner/model-GGUF/resolve/{hub.newest}/m-Q4_K_M.gguf"]
    card = store.resolved(CARD)
    (file,) = card.files
    assert (file.name, file.size) == ("m-Q4_K_M.gguf", len(ONE))
    assert (store.state(card), store.path(card)) == ("present", path)
    assert store.verify(card).ok
    assert json.loads((path.parent / PIN).read_text())["listing"]["commit"] == hub.newest
    # Nothing half-written lies beside it.
    assert sorted(each.name for each in path.parent.iterdir()) == ["m-Q4_K_M.gguf", PIN]


def test_what_the_hub_has_later_changes_nothing_and_is_told(
    store: ModelStore, hub: ListingHub
) -> None:
    path = store.pull(CARD)
    old = hub.newest
    hub.commit({"m-Q4_K_M.gguf": TWO})
    path.unlink()
    recorder = Recorder()
    assert store.pull(CARD, recorder).read_bytes() == ONE
    (note,) = [step.note for step in recorder.seen if step.phase == "note"]
    assert old[:12] in note
    assert "models pull listed --repin" in note
    assert store.verify(store.resolved(CARD)).ok


def test_a_new_commit_with_the_same_weights_is_no_news(store: ModelStore, hub: ListingHub) -> None:
    store.pull(CARD)
    hub.commit({**FILES, "README.md": b"other words"})
    recorder = Recorder()
    store.pull(CARD, recorder)
    assert [step.phase for step in recorder.seen] == ["done"]


def test_repin_takes_the_new_files_and_drops_the_old(store: ModelStore, hub: ListingHub) -> None:
    old = store.pull(CARD)
    hub.commit({"m-v2-Q4_K_M.gguf": TWO})
    new = store.pull(CARD, repin=True)
    assert new.name == "m-v2-Q4_K_M.gguf"
    assert new.read_bytes() == TWO
    assert not old.exists()
    assert store.path(store.resolved(CARD)) == new
    assert hub.newest in (new.parent / PIN).read_text()


def test_a_repin_that_fails_leaves_pin_and_weights(store: ModelStore, hub: ListingHub) -> None:
    old = store.pull(CARD)
    hub.commit({"m-v2-Q4_K_M.gguf": TWO})
    hub.forged["m-v2-Q4_K_M.gguf"] = b"?" * len(TWO)
    with pytest.raises(DownloadError, match="SHA-256"):
        store.pull(CARD, repin=True)
    assert store.path(store.resolved(CARD)) == old


def test_offline_a_pin_is_enough(hub: ListingHub, tmp_path: Path) -> None:
    make_store(tmp_path, hub.environ()).pull(CARD)
    offline = make_store(tmp_path, hub.environ(HF_HUB_OFFLINE="1"))
    before = len(hub.asked)
    card = offline.resolved(CARD)
    assert offline.verify(card).ok
    assert offline.pull(CARD) == offline.path(card)
    assert len(hub.asked) == before


def test_offline_without_a_pin_nothing_is_asked(hub: ListingHub, tmp_path: Path) -> None:
    store = make_store(tmp_path, hub.environ(HF_HUB_OFFLINE="1"))
    with pytest.raises(DownloadError, match="HF_HUB_OFFLINE is set") as caught:
        store.pull(CARD)
    assert "Unset HF_HUB_OFFLINE" in caught.value.remedy
    assert hub.asked == []
    assert not store.folder(CARD).exists()


def test_an_interrupted_pull_goes_on_with_the_files_it_began_with(
    store: ModelStore, hub: ListingHub
) -> None:
    hub.forged["m-Q4_K_M.gguf"] = b"?" * len(ONE)
    with pytest.raises(DownloadError):
        store.pull(CARD)
    hub.forged.clear()
    hub.commit({"m-Q4_K_M.gguf": TWO})
    assert store.pull(store.resolved(CARD)).read_bytes() == ONE


def test_a_file_that_is_not_what_was_listed_is_not_kept(
    store: ModelStore, hub: ListingHub, tmp_path: Path
) -> None:
    hub.forged["m-Q4_K_M.gguf"] = gguf_bytes(seed=9)
    with pytest.raises(DownloadError, match="its SHA-256 is"):
        store.pull(CARD)
    assert kept(tmp_path) == []
    assert store.state(store.resolved(CARD)) == "absent"


def test_a_split_file_is_fetched_whole_and_its_first_part_opened(
    store: ModelStore, hub: ListingHub
) -> None:
    hub.commit(PARTS)
    path = store.pull(CARD)
    assert path.name == "m-Q4_K_M-00001-of-00003.gguf"
    card = store.resolved(CARD)
    assert [file.name[-19:-14] for file in card.files] == ["00001", "00002", "00003"]
    assert store.path(card) == path
    assert len(hub.downloads()) == 3
    assert card.size == sum(len(part) for part in PARTS.values())


def test_a_part_that_is_lost_later_is_missed_and_fetched_again(
    store: ModelStore, hub: ListingHub
) -> None:
    hub.commit(PARTS)
    lost = store.pull(CARD).with_name("m-Q4_K_M-00002-of-00003.gguf")
    lost.unlink()
    card = store.resolved(CARD)
    assert store.state(card) == "partial"
    with pytest.raises(MissingModelError) as caught:
        store.path(card)
    assert caught.value.where == str(lost)
    store.pull(card)
    assert lost.is_file()
    assert len(hub.downloads()) == 4


def test_a_pin_of_another_repository_or_pattern_is_none(store: ModelStore) -> None:
    store.pull(CARD)
    other = hub_card("*Q8_0.gguf")
    assert store.resolved(other) == other
    assert store.pull(other).read_bytes() == TWO


def test_a_damaged_pin_is_not_silently_made_anew(store: ModelStore, hub: ListingHub) -> None:
    pin = store.pull(CARD).parent / PIN
    pin.write_text('{"hub": 1}')
    assert store.state(store.resolved(CARD)) == "absent"
    with pytest.raises(WeightsError, match="--repin") as caught:
        store.pull(CARD)
    assert caught.value.where == str(pin)
    store.pull(CARD, repin=True)
    assert store.verify(store.resolved(CARD)).ok


def test_removing_takes_weights_pin_and_the_folder(store: ModelStore, tmp_path: Path) -> None:
    path = store.pull(CARD)
    gone = store.remove(store.resolved(CARD))
    assert {each.name for each in gone.files} == {"m-Q4_K_M.gguf", PIN}
    assert gone.size > len(ONE)
    assert not path.parent.exists()


def test_removing_leaves_what_somebody_else_put_there(store: ModelStore) -> None:
    path = store.pull(CARD)
    other = path.with_name("notes.txt")
    other.write_text("mine")
    store.remove(store.resolved(CARD))
    assert not path.exists()
    assert other.read_text() == "mine"
