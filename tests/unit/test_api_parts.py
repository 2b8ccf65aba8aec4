"""What the API makes of settings: cards, corpora, engines, secrets; and how it names what fails."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from api_fakes import Ears, direct, scripted_settings, write_data

from offline_judge import api, wiring
from offline_judge.backends.options import EngineOptions
from offline_judge.backends.scripted import ScriptedBackend
from offline_judge.errors import (
    DataError,
    MissingError,
    MissingModelError,
    StorageError,
    UsageError,
)
from offline_judge.registry import BACKENDS
from offline_judge.settings import Settings
from offline_judge.weights.store import ModelStore

CARD = """
name = "{name}"
family = "tiny"
role = "{role}"
parameters = 1000000
quantisation = "Q4_0"
window = 1024
licence = "Apache-2.0"

[[files]]
name = "tiny.gguf"
size = 4
sha256 = "{sha256}"
"""

VECTORS = """
[embedding]
format = "gguf"
dimension = 4
max_tokens = 8
"""


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    cards = tmp_path / "cards"
    cards.mkdir()
    for name, role in (("tiny", "judge"), ("vectors", "embedder")):
        text = CARD.format(name=name, role=role, sha256="0" * 64)
        vectors = VECTORS if role == "embedder" else ""
        (cards / f"{name}.toml").write_text(text + vectors)
    return replace(scripted_settings(tmp_path), cards_dir=str(cards))


def _corpus(path: Path) -> Path:
    row = {"id": "d1", "title": "Ants", "text": "Ants live in colonies."}
    path.write_text(json.dumps(row) + "\n")
    return path


def test_cards_of_the_users_own_are_listed_beside_the_shipped_ones(settings: Settings) -> None:
    views = {view.card.name: view for view in api.models_list(settings)}
    assert views["tiny"].state == "absent"
    assert views["tiny"].path is None
    assert "smollm2-135m-instruct" in views


def test_a_misspelt_model_gets_the_nearest(settings: Settings) -> None:
    with pytest.raises(MissingModelError) as caught:
        api.models_show("tinny", settings)
    assert "tiny" in str(caught.value)


def test_a_judge_without_weights_says_how_to_get_them(settings: Settings, tmp_path: Path) -> None:
    data = write_data(tmp_path / "data.jsonl")
    with pytest.raises(MissingModelError, match="models pull tiny"):
        api.run(direct(data), replace(settings, judge="tiny"))
    assert api.list_runs(settings) == []


def test_an_embedder_cannot_judge(settings: Settings, tmp_path: Path) -> None:
    data = write_data(tmp_path / "data.jsonl")
    with pytest.raises(UsageError, match="embedder"):
        api.run(direct(data), replace(settings, judge="vectors"))


def test_weights_that_are_absent_do_not_verify(settings: Settings) -> None:
    assert not api.models_verify("tiny", settings).ok


def test_a_corpus_is_built_searched_by_name_and_part_of_the_manifest(
    settings: Settings, tmp_path: Path
) -> None:
    built = api.corpus_build("ants", _corpus(tmp_path / "ants.jsonl"), settings)
    assert built.documents == 1
    data = write_data(tmp_path / "data.jsonl", count=2)
    request = replace(direct(data), method="sage")
    view = api.run(request, replace(settings, search="corpus:ants"))
    assert view.manifest.search
    assert view.summary.searches > 0
    assert str(tmp_path) not in json.dumps(view.manifest.search)


def test_a_corpus_that_is_not_there_is_named(settings: Settings, tmp_path: Path) -> None:
    data = write_data(tmp_path / "data.jsonl")
    request = replace(direct(data), method="sage")
    with pytest.raises(MissingError, match="ants"):
        api.run(request, replace(settings, search="corpus:ants"))


def test_a_method_without_search_needs_no_corpus(settings: Settings, tmp_path: Path) -> None:
    data = write_data(tmp_path / "data.jsonl", count=1)
    view = api.run(direct(data), replace(settings, search="corpus:ants"))
    assert view.manifest.search == {}


def test_an_unknown_provider_gets_the_list(settings: Settings) -> None:
    with pytest.raises(UsageError, match="corpus"):
        wiring.open_search(replace(settings, search="corpsu"), Ears())


def test_only_the_default_corpus_needs_no_file(settings: Settings) -> None:
    with pytest.raises(UsageError, match="corpus build ants FILE"):
        api.corpus_build("ants", None, settings)


def test_bad_documents_are_named(settings: Settings, tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text('{"id": 1}\n')
    with pytest.raises(DataError, match="line 1"):
        api.corpus_build("ants", path, settings)


def test_a_damaged_secret_is_not_used(settings: Settings, tmp_path: Path) -> None:
    settings.data_path.mkdir()
    (settings.data_path / "secret").write_bytes(b"short")
    with pytest.raises(StorageError, match="secret is damaged"):
        wiring.read_secret(settings)


def test_making_the_secret_leaves_nothing_else_behind(settings: Settings) -> None:
    secret = wiring.read_secret(settings)
    assert [path.name for path in settings.data_path.iterdir()] == ["secret"]
    assert wiring.read_secret(settings) == secret


def test_who_comes_second_takes_the_secret_of_who_came_first(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = settings.data_path / "secret"
    first = b"1" * 32
    really_open = os.open

    def open_while_another_is_faster(*args: object, **kwargs: object) -> int:
        if not path.exists():
            path.write_bytes(first)
        return really_open(*args, **kwargs)  # type: ignore[arg-type]  # passed on as they came

    monkeypatch.setattr(os, "open", open_while_another_is_faster)
    assert wiring.read_secret(settings) == first


def test_paths_in_settings_mean_the_same_from_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    given = Settings(judge="scripted:s.json", prompts_dir="p", cards_dir="")
    settled = wiring.settled(given)
    assert settled.judge == f"scripted:{tmp_path / 's.json'}"
    assert settled.prompts_dir == str(tmp_path / "p")
    assert settled.cards_dir == ""


def test_each_lane_has_a_slot_for_each_stage(settings: Settings) -> None:
    with wiring.open_components(replace(settings, lanes=3), "direct", {}, Ears()) as parts:
        assert parts.engine.backend.capabilities.slots == 3 * len(parts.method.stages)


def test_the_window_asked_of_an_engine_is_no_larger_than_the_model_was_trained_for(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[EngineOptions] = []

    class Engine(ScriptedBackend):
        def __init__(self, options: EngineOptions) -> None:
            asked.append(options)
            super().__init__()

    monkeypatch.setattr(ModelStore, "path", lambda _store, _card: Path("tiny.gguf"))
    monkeypatch.setattr(BACKENDS, "load", lambda _name: Engine)
    with wiring.open_components(replace(settings, judge="tiny"), "direct", {}, Ears()) as parts:
        assert asked[0].window == 1024
        assert asked[0].system_role is True
        # What was wanted is kept, so that the run can tell the difference.
        assert parts.engine.window == 4096
        assert parts.identity.sha256 == "0" * 64
        assert parts.identity.family == "tiny"


def test_a_run_that_does_not_listen_is_named_with_its_process(
    settings: Settings, tmp_path: Path
) -> None:
    run_id = api.run(direct(write_data(tmp_path / "d.jsonl")), settings).manifest.run_id
    with (
        wiring.run_store(settings).open(run_id).writer(),
        pytest.raises(UsageError, match=f"Process {os.getpid()} has run"),
    ):
        api.cancel(run_id, settings)


def test_the_shipped_corpus_cannot_be_replaced(settings: Settings, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="comes with the program"):
        api.corpus_build("factbook", _corpus(tmp_path / "d.jsonl"), settings)


def test_a_search_without_the_name_of_its_corpus_is_refused(settings: Settings) -> None:
    with pytest.raises(UsageError, match="names no corpus"):
        wiring.open_search(replace(settings, search="corpus:"), Ears())


@pytest.mark.parametrize(("question", "response"), [("Which?", " "), ("", "That one")])
def test_asking_about_nothing_is_refused(settings: Settings, question: str, response: str) -> None:
    with pytest.raises(UsageError, match="is empty"):
        api.ask(question, response, method="direct", settings=settings)
