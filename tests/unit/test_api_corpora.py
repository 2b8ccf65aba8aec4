"""Corpora through the API: what is built and embedded, and how a run searches in them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from api_fakes import Ears, direct, scripted_settings, write_data
from numpy.typing import NDArray

from offline_judge import api, wiring
from offline_judge.api.views import RunRequest
from offline_judge.domain.events import AnyEvent, WarningRaised
from offline_judge.errors import (
    BackendError,
    MissingError,
    MissingModelError,
    RunChangedError,
    SearchError,
    UsageError,
)
from offline_judge.protocols import Embedder
from offline_judge.retrieval.corpus.store import build_lock
from offline_judge.retrieval.embedding.hashing import HashingEmbedder
from offline_judge.settings import Settings

DOCUMENTS = {"ants": "Ants live in colonies.", "bees": "Bees make honey."}


class Told:
    """A listener of builds that remembers."""

    def __init__(self) -> None:
        self.indexes: list[tuple[int, int]] = []
        self.embeds: list[tuple[int, int]] = []
        self.warnings: list[str] = []

    def indexed(self, documents: int, passages: int) -> None:
        self.indexes.append((documents, passages))

    def embedded(self, done: int, total: int) -> None:
        self.embeds.append((done, total))

    def note(self, text: str) -> None:
        raise AssertionError(text)

    def warn(self, text: str) -> None:
        self.warnings.append(text)


class Broken(HashingEmbedder):
    """Opens, and fails at every query."""

    def embed(
        self, texts: Sequence[str], *, kind: Literal["query", "passage"]
    ) -> NDArray[np.float32]:
        if kind == "query":
            raise BackendError("the embedder broke")
        return super().embed(texts, kind=kind)


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return replace(scripted_settings(tmp_path), embedder="hashing", search="corpus:c")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "docs.jsonl"
    rows = ({"id": name, "title": name, "text": text} for name, text in DOCUMENTS.items())
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def sage(tmp_path: Path) -> RunRequest:
    return replace(direct(write_data(tmp_path / "data.jsonl", count=2)), method="sage")


def _lacking(monkeypatch: pytest.MonkeyPatch, error: Exception | Embedder) -> None:
    def opening(_settings: Settings) -> Embedder:
        if isinstance(error, Exception):
            raise error
        return error

    monkeypatch.setattr("offline_judge.wiring.corpora.open_embedder", opening)


def _warnings(events: Sequence[AnyEvent]) -> list[str]:
    return [event.message for event in events if isinstance(event, WarningRaised)]


def test_a_corpus_is_built_with_its_vectors(settings: Settings, file: Path) -> None:
    told = Told()
    state = api.corpus_build("c", file, settings, told)
    assert (state.documents, state.passages, state.embedded, state.complete) == (2, 2, 2, True)
    assert (state.embedder, state.paths, state.problem) == ("hashing-1", (str(file),), "")
    assert state.size > 1000
    assert told.indexes == [(2, 2)]
    assert told.embeds == [(0, 2), (2, 2)]
    assert told.warnings == []


def test_without_vectors_nothing_is_embedded_until_it_is_asked_for(
    settings: Settings, file: Path
) -> None:
    state = api.corpus_build("c", file, settings, vectors=False)
    assert (state.embedded, state.complete, state.embedder) == (0, False, "")
    assert api.corpus_embed("c", settings).complete


def test_the_setting_none_embeds_nothing_and_says_nothing(settings: Settings, file: Path) -> None:
    told, without = Told(), replace(settings, embedder="none")
    assert not api.corpus_build("c", file, without, told).complete
    assert told.warnings == []
    with pytest.raises(UsageError, match="`none`"):
        api.corpus_embed("c", without)


def test_a_missing_embedder_leaves_a_corpus_for_searching_by_words(
    settings: Settings, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _lacking(monkeypatch, MissingModelError("No weights", remedy="offline-judge models pull tiny"))
    told = Told()
    assert not api.corpus_build("c", file, settings, told).complete
    (warning,) = told.warnings
    assert "by words only" in warning
    assert "models pull tiny" in warning
    with pytest.raises(MissingModelError):
        api.corpus_embed("c", settings)


def test_a_corpus_is_brought_up_to_date_from_where_it_was_built(
    settings: Settings, file: Path, tmp_path: Path
) -> None:
    api.corpus_build("c", file, settings)
    with file.open("a") as rows:
        rows.write('{"id": "cows", "title": "Cows", "text": "Cows give milk."}\n')
    told = Told()
    assert api.corpus_build("c", None, settings, told).documents == 3
    assert told.warnings == []
    assert told.embeds == [(2, 3), (3, 3)]


def test_a_corpus_from_another_path_says_what_it_replaces(
    settings: Settings, file: Path, tmp_path: Path
) -> None:
    api.corpus_build("c", file, settings)
    other = tmp_path / "notes.md"
    other.write_text("# Notes\n\nOther words.")
    told = Told()
    state = api.corpus_build("c", [other], settings, told)
    assert state.paths == (str(other),)
    (warning,) = told.warnings
    assert str(file) in warning
    assert str(other) in warning


def test_corpora_are_listed_and_removed(settings: Settings, file: Path) -> None:
    assert api.corpus_list(settings) == []
    api.corpus_build("b", file, settings)
    api.corpus_build("a", file, settings, vectors=False)
    assert [(s.name, s.complete) for s in api.corpus_list(settings)] == [("a", False), ("b", True)]
    (settings.corpora_path / "b" / "manifest.json").write_text("{")
    states = {state.name: state for state in api.corpus_list(settings)}
    assert "is damaged" in states["b"].problem
    assert api.corpus_rm("b", settings) is False
    assert [state.name for state in api.corpus_list(settings)] == ["a"]
    with pytest.raises(MissingError):
        api.corpus_rm("b", settings)


def test_a_corpus_being_built_is_not_removed(settings: Settings, file: Path) -> None:
    api.corpus_build("c", file, settings)
    with (
        build_lock("c", settings.corpora_path),
        pytest.raises(UsageError, match="is building the corpus `c`"),
    ):
        api.corpus_rm("c", settings)
    assert len(api.corpus_list(settings)) == 1


def test_a_run_searches_by_words_and_vectors_and_records_it(
    settings: Settings, file: Path, sage: RunRequest
) -> None:
    api.corpus_build("c", file, settings)
    ears = Ears()
    search = api.run(sage, settings, ears).manifest.search
    assert search["mode"] == "words and vectors"
    assert search["embedder"] == "hashing-1"
    assert _warnings(ears.events) == []


def test_a_run_starts_by_words_where_vectors_are_not_complete(
    settings: Settings, file: Path, sage: RunRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    _lacking(monkeypatch, AssertionError("nothing may be opened or embedded"))
    api.corpus_build("c", file, settings, vectors=False)
    ears = Ears()
    assert api.run(sage, settings, ears).manifest.search["mode"] == "words"
    assert "search" in ears.phases
    assert _warnings(ears.events) == []


@pytest.mark.parametrize(
    ("lack", "said"),
    [
        (MissingModelError("No weights", remedy="models pull tiny"), "models pull tiny"),
        (BackendError("onnx is broken"), "onnx is broken"),
        (Broken(), "the embedder broke"),
        (HashingEmbedder(8), ""),
    ],
)
def test_an_embedder_that_cannot_be_used_is_a_search_by_words_with_a_warning(
    settings: Settings,
    file: Path,
    sage: RunRequest,
    monkeypatch: pytest.MonkeyPatch,
    lack: Exception | HashingEmbedder,
    said: str,
) -> None:
    api.corpus_build("c", file, settings)
    if not said:
        said = "made by hashing-1, not other-1. Make them with `offline-judge corpus embed c`"
        monkeypatch.setattr(HashingEmbedder, "id", "other-1")
    _lacking(monkeypatch, lack)
    ears = Ears()
    assert api.run(sage, settings, ears).manifest.search["mode"] == "words"
    (warning,) = _warnings(ears.events)
    assert "by words only" in warning
    assert said.replace(". Make", " Make") in warning


def test_a_resumed_run_goes_on_by_words_though_vectors_were_made_since(
    settings: Settings, file: Path, sage: RunRequest
) -> None:
    api.corpus_build("c", file, settings, vectors=False)
    run = api.run(replace(sage, limit=1), settings).manifest
    api.corpus_embed("c", settings)
    view = api.resume(run.run_id, settings, limit=2)
    assert view.summary.outcomes["scored"] + view.summary.outcomes.get("unscored", 0) == 2
    assert api.run(sage, settings).manifest.search["mode"] == "words and vectors"


def test_a_run_by_vectors_is_not_gone_on_with_by_words(
    settings: Settings, file: Path, sage: RunRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    api.corpus_build("c", file, settings)
    run = api.run(replace(sage, limit=1), settings).manifest
    _lacking(monkeypatch, MissingModelError("No weights"))
    with pytest.raises(RunChangedError, match="embedder, mode, word_weight"):
        api.resume(run.run_id, settings, limit=2)


def test_a_damaged_index_is_an_error_and_not_a_search_by_words(
    settings: Settings, file: Path
) -> None:
    api.corpus_build("c", file, settings)
    next((settings.corpora_path / "c").glob("index-*/*.store")).unlink()
    with pytest.raises(SearchError, match="damaged"):
        wiring.open_search(settings, Ears())


def test_damaged_vectors_are_a_warning_with_the_command_that_mends_them(
    settings: Settings, file: Path
) -> None:
    api.corpus_build("c", file, settings)
    next((settings.corpora_path / "c").glob("vectors-*/matrix.npy")).unlink()
    warnings: list[str] = []
    search = wiring.open_search(settings, Ears(), warn=warnings.append)
    assert search.identity()["mode"] == "words"
    assert "corpus embed c" in warnings[0]
    api.corpus_embed("c", settings)
    assert wiring.open_search(settings, Ears()).identity()["mode"] == "words and vectors"


def test_the_shipped_corpus_takes_no_path(settings: Settings, file: Path) -> None:
    with pytest.raises(UsageError, match="comes with the program"):
        api.corpus_build("factbook", file, settings)
