"""The API of models: licences before a pull, runs before a removal, memory before a load."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from api_fakes import direct, scripted_settings, write_data

from offline_judge import api, wiring
from offline_judge.checks.parts import check_weights
from offline_judge.errors import DoesNotFitError, LicenceError, RunLockedError, UsageError
from offline_judge.settings import Settings
from offline_judge.wiring.engines import make_engine

# The hub on loopback and the small GGUF files are those of the tests of weights.
sys.path.append(str(Path(__file__).parent / "weights"))
from listing_hub import ListingHub, listing
from weights_helpers import gguf_bytes

SHAPE: dict[str, str | int] = {
    "general.architecture": "tiny",
    "tiny.context_length": 4096,
    "tiny.block_count": 32,
    "tiny.embedding_length": 4096,
    "tiny.attention.head_count": 32,
}
CONTENT = gguf_bytes(more=SHAPE)

CARD = """
name = "bound"
family = "tiny"
role = "judge"
parameters = 1000000
quantisation = "Q4_K_M"
window = 1024
licence = "Research"
non_commercial = true

[hub]
repository = "owner/model-GGUF"
pattern = "*Q4_K_M.gguf"
"""


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    for name in (
        "HF_HUB_OFFLINE",
        "HF_TOKEN",
        "http_proxy",
        "HTTP_PROXY",
        "all_proxy",
        "ALL_PROXY",
    ):
        monkeypatch.delenv(name, raising=False)
    cards = tmp_path / "cards"
    cards.mkdir()
    (cards / "bound.toml").write_text(CARD)
    return replace(scripted_settings(tmp_path), cards_dir=str(cards))


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[ListingHub]:
    with listing(ListingHub(**{"m-Q4_K_M.gguf": CONTENT})) as served:
        monkeypatch.setenv("HF_ENDPOINT", served.address)
        yield served


def _own(tmp_path: Path) -> Path:
    path = tmp_path / "own.gguf"
    path.write_bytes(CONTENT)
    return path


def test_nothing_is_asked_of_the_hub_before_the_licence_is_accepted(
    settings: Settings, hub: ListingHub
) -> None:
    assert "Research" in api.models_show("bound", settings).terms
    with pytest.raises(LicenceError):
        api.models_pull("bound", settings)
    assert hub.asked == []
    path = api.models_pull("bound", settings, accept_licence=True)
    view = api.models_show("bound", settings)
    assert (view.state, view.path) == ("present", path)
    assert view.card.size == len(CONTENT)
    # What is here is not asked for again, and what was accepted is remembered.
    path.unlink()
    assert api.models_pull("bound", settings) == path
    listed = {view.card.name: view for view in api.models_list(settings)}
    assert listed["bound"].fit is not None
    assert not listed["bound"].fit.at_least


def test_removing_tells_what_goes_and_asks_the_hub_anew_later(
    settings: Settings, hub: ListingHub
) -> None:
    path = api.models_pull("bound", settings, accept_licence=True)
    wanted = api.models_removal("bound", settings)
    assert wanted.size > len(CONTENT)
    assert not wanted.card
    assert api.models_rm("bound", settings) == wanted
    assert not path.parent.exists()
    view = api.models_show("bound", settings)
    assert (view.state, view.card.files) == ("absent", ())
    assert api.models_removal("bound", settings).size == 0


def test_an_added_model_goes_with_its_card_and_its_file_stays(
    settings: Settings, tmp_path: Path
) -> None:
    own = _own(tmp_path)
    added = api.models_add(own, settings, said={"name": "mine"})
    assert added.model.added
    assert added.model.path == own
    assert api.models_show("mine", settings).state == "present"
    assert api.models_list(settings)[0].added is False
    gone = api.models_rm("mine", settings)
    assert (gone.size, gone.kept, gone.card) == (0, (own,), True)
    assert own.exists()
    assert "mine" not in [view.card.name for view in api.models_list(settings)]


def test_a_model_that_a_run_uses_is_not_removed(settings: Settings, tmp_path: Path) -> None:
    api.models_add(_own(tmp_path), settings, said={"name": "scripted"})
    run_id = api.run(direct(write_data(tmp_path / "d.jsonl")), settings).manifest.run_id
    with (
        wiring.run_store(settings).open(run_id).writer(),
        pytest.raises(RunLockedError, match=f"Run {run_id} uses scripted"),
    ):
        api.models_rm("scripted", settings)
    # A run that has ended uses nothing.
    assert api.models_rm("scripted", settings).card


def test_an_engine_is_not_made_for_what_does_not_fit(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    api.models_add(_own(tmp_path), settings, said={"name": "mine"})
    wanted = replace(settings, judge="mine")
    # 512 KiB a token: 2 GiB for each slot of 4,096 tokens.
    monkeypatch.setattr("offline_judge.weights.fit.free_memory", lambda: 5 << 30)
    assert make_engine(wanted, 2)[1].name == "mine"
    with pytest.raises(DoesNotFitError, match="2 slots, that is fewer `lanes`"):
        make_engine(wanted, 3)


def test_a_smaller_cache_is_counted_as_one(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    api.models_add(_own(tmp_path), settings, said={"name": "mine"})
    wanted = replace(settings, judge="mine")
    monkeypatch.setattr("offline_judge.weights.fit.free_memory", lambda: 3 << 30)
    with pytest.raises(DoesNotFitError, match="q8_0"):
        make_engine(wanted, 2)
    assert make_engine(replace(wanted, kv_cache="q8_0"), 2)[1].name == "mine"


def test_an_engine_is_told_apart_from_weights_it_does_not_open(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("offline_judge.wiring.engines.interpreter", lambda *_: "/venv/python")
    own = api.models_add(_own(tmp_path), settings, said={"name": "mine"}).model.card
    with pytest.raises(UsageError, match="which is a GGUF file"):
        make_engine(replace(settings, judge="mine", engine="vllm"), 1)
    card = tmp_path / "data" / "cards" / "mine.toml"
    card.write_text(card.read_text().replace("window =", 'format = "hf"\nwindow ='))
    assert own.format == "gguf"
    with pytest.raises(UsageError, match="which is a folder"):
        make_engine(replace(settings, judge="mine", engine="llama_cpp"), 1)


def test_added_weights_that_are_gone_are_added_again_and_not_pulled(
    settings: Settings, tmp_path: Path
) -> None:
    path = _own(tmp_path)
    api.models_add(path, settings, said={"name": "mine"})
    path.rename(path.with_suffix(".elsewhere"))
    view = api.models_show("mine", settings)
    report = api.models_verify("mine", settings)
    for remedy in (view.remedy, report.remedy):
        assert "models add PATH --name mine" in remedy
        assert "pull" not in remedy
    (found,) = [one for one in check_weights(settings) if one.name == "mine"]
    assert (found.state, found.text) == ("problem", "it is not here")


def test_a_name_that_cannot_be_is_refused_before_anything_is_read(
    settings: Settings, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=r"`\.\./up` cannot be the name"):
        api.models_add(tmp_path / "nowhere.gguf", settings, said={"name": "../up"})


def test_a_path_is_kept_without_its_detours(settings: Settings, tmp_path: Path) -> None:
    path = _own(tmp_path)
    added = api.models_add(path.parent / "x" / ".." / path.name, settings, said={"name": "mine"})
    assert added.model.path == path
