"""The record of evidence on the way from settings to a run: what is asked, offered and survived."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from api_fakes import Ears, scripted_settings, write_data

from offline_judge import api, wiring
from offline_judge.api import RunRequest
from offline_judge.domain.events import SearchFinished
from offline_judge.domain.evidence import EvidenceState, Passage, SearchHit
from offline_judge.errors import BackendError, StorageError, UsageError
from offline_judge.protocols import SearchProvider
from offline_judge.registry import PROVIDERS, Registry
from offline_judge.retrieval.embedding.hashing import HashingEmbedder
from offline_judge.retrieval.evidence import remember
from offline_judge.retrieval.evidence.model import Question, Scope
from offline_judge.retrieval.evidence.record import Record
from offline_judge.retrieval.search.corpus import CorpusSearch
from offline_judge.settings import Settings
from offline_judge.wiring import evidence, searches

WORDS = "A river museum was found and held on an island named before the old city record."
"""What the scripted judge makes its queries of."""

PERU = "The capital of Peru is Lima, on the Pacific coast."


class Counted:
    """A provider of which every search is counted; each query finds a passage of its own."""

    name: ClassVar[str] = "counted"
    asked: ClassVar[list[str]] = []

    def __init__(self, name: str, _folder: Path) -> None:
        self._name = name

    def identity(self) -> dict[str, Any]:
        return {"provider": self.name, "name": self._name}

    async def search(self, query: str, *, limit: int, offset: int = 0) -> tuple[SearchHit, ...]:
        Counted.asked.append(query)
        return (hit(f"Found for {query}"),)

    def close(self) -> None:
        pass


PROVIDER: type[SearchProvider] = Counted


def hit(text: str, source: str = "counted:x") -> SearchHit:
    passage = Passage(
        id=f"{source}#{len(text)}", document_id="d", title="", text=text, end=9, source=source
    )
    return SearchHit(rank=1, score=1.0, passage=passage)


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    shipped = {name: PROVIDERS.placeholder(name) for name in PROVIDERS}
    registry = Registry("search provider", {**shipped, "counted": f"{__name__}:PROVIDER"})
    monkeypatch.setattr(searches, "PROVIDERS", registry)
    Counted.asked.clear()
    corpus = tmp_path / "docs.jsonl"
    texts = {"Peru": PERU, "Chad": "The capital of Chad is N'Djamena.", "River": WORDS}
    rows = [{"id": name, "title": name, "text": text} for name, text in texts.items()]
    corpus.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = replace(scripted_settings(tmp_path), embedder="hashing", search="corpus:mine")
    api.corpus_build("mine", corpus, found, vectors=False)
    return found


@pytest.fixture
def sage(tmp_path: Path) -> RunRequest:
    return RunRequest("sage", write_data(tmp_path / "data.jsonl", 2))


class Hearing(Ears):
    """Ears that remember the details of phases, too."""

    def __init__(self) -> None:
        super().__init__()
        self.details: list[str] = []

    def phase(self, phase: str, detail: str = "") -> None:
        super().phase(phase, detail)
        self.details.append(detail)


def searched(ears: Ears) -> list[SearchFinished]:
    return [event for event in ears.events if isinstance(event, SearchFinished)]


def found(settings: Settings, query: str, ears: Ears | None = None) -> tuple[SearchHit, ...]:
    with closing(wiring.open_search(settings, ears or Ears())) as search:
        return asyncio.run(search.search(query, limit=6))


def recorded(settings: Settings, query: str, text: str, source: str = "web:x") -> None:
    with closing(Record(settings.evidence_path)) as record:
        question = Question("web", {"name": "x"}, query, Scope())
        record.keep(question, [hit(text, source)], limit=6)


def counts(settings: Settings) -> tuple[int, int]:
    """Passages, and vectors of the hashing embedder."""
    state = api.evidence_stats(settings)
    return state.passages, sum(one.vectors for one in state.vectors)


def test_the_second_run_is_answered_from_the_record(settings: Settings, sage: RunRequest) -> None:
    settings = replace(settings, search="counted:x", cache=False)
    first, again = Ears(), Ears()
    before = api.run(sage, settings, first)
    asked = len(Counted.asked)
    after = api.run(sage, settings, again)
    assert asked > 0
    assert len(Counted.asked) == asked
    assert all(not one.found_at for event in searched(first) for one in event.hits)
    assert all(one.found_at and not one.cached for event in searched(again) for one in event.hits)
    assert {event.provider for event in searched(again)} == {"counted"}
    assert before.summary.recorded_searches == 0
    assert after.summary.recorded_searches == after.summary.searches > 0
    assert after.summary.evidence_states == {EvidenceState.FOUND: 2}
    assert [r.probability for r in before.rows] == [r.probability for r in after.rows]


def test_letters_and_spaces_make_no_other_query(settings: Settings) -> None:
    settings = replace(settings, search="counted:x")
    found(settings, "capital of Peru")
    hits = found(settings, " CAPITAL  of peru")
    assert len(Counted.asked) == 1
    assert hits[0].passage.text == "Found for capital of Peru"


@pytest.mark.parametrize(
    "change", [{"locale": "pt-BR"}, {"max_age_days": 3}, {"search": "counted:y"}]
)
def test_another_scope_or_provider_is_another_query(
    settings: Settings, change: dict[str, Any]
) -> None:
    settings = replace(settings, search="counted:x")
    found(settings, "capital of Peru")
    found(replace(settings, **change), "capital of Peru")
    assert len(Counted.asked) == 2


def test_what_is_older_than_allowed_is_searched_anew(settings: Settings) -> None:
    settings = replace(settings, search="counted:x", max_age_days=3)
    found(settings, "capital of Peru")
    with closing(Record(settings.evidence_path)) as record, record.database.writing() as connection:
        connection.execute("UPDATE queries SET found_at = '2020-01-01T00:00:00Z'")
    found(settings, "capital of Peru")
    assert len(Counted.asked) == 2


def test_a_corpus_answers_other_letters_itself(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    search = CorpusSearch.search

    async def counted(self: CorpusSearch, query: str, **more: Any) -> tuple[SearchHit, ...]:
        asked.append(query)
        return await search(self, query, **more)

    monkeypatch.setattr(CorpusSearch, "search", counted)
    for query in ("Capital of Peru", "capital of Peru", "Capital of Peru"):
        found(settings, query)
    assert asked == ["Capital of Peru", "capital of Peru"]


def test_a_corpus_never_gives_what_other_letters_found(settings: Settings, tmp_path: Path) -> None:
    street = tmp_path / "street.jsonl"
    street.write_text(json.dumps({"id": "s", "title": "", "text": "οδος"}) + "\n")
    api.corpus_build("street", street, settings, vectors=False)
    asked = replace(settings, search="corpus:street")
    # One query when normalised, but the word index knows the two forms of sigma as two letters.
    assert [len(found(asked, query)) for query in ("ΟΔΟΣ", "οδος")] == [0, 1]


def test_other_queries_passages_come_from_memory_and_offline_only(settings: Settings) -> None:
    recorded(settings, "Which city governs Peru?", "Lima governs Peru; capital of Peru since 1535.")
    query = "capital of Peru"
    for search in ("corpus:mine", "counted:x"):
        hits = found(replace(settings, search=search), query)
        assert hits
        assert not any(one.cached or one.passage.source == "web:x" for one in hits)
    for change in ({"search": "memory"}, {"offline": True}):
        cached = [one for one in found(replace(settings, **change), query) if one.cached]
        assert "web:x" in {one.passage.source for one in cached}
        assert all(one.found_at for one in cached)


@pytest.mark.parametrize("last", [(), (PERU,)], ids=["nothing", "what the corpus has"])
def test_a_later_search_that_came_to_nothing_hides_no_earlier_answer(
    settings: Settings, last: tuple[str, ...]
) -> None:
    recorded(settings, "capital of Peru", "Lima governs Peru.")
    with closing(Record(settings.evidence_path)) as record:
        hits = [hit(text, "corpus:mine") for text in last]
        record.keep(Question("other", {}, "capital of Peru", Scope()), hits, limit=6)
    hits = list(found(replace(settings, offline=True), "capital of Peru"))
    (lima,) = [one for one in hits if one.passage.source == "web:x"]
    assert not lima.cached


def test_memory_that_found_nothing_but_other_queries_passages_is_told_as_cached(
    settings: Settings, sage: RunRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded(settings, "something else", WORDS)
    settings = replace(settings, search="memory", memory_similarity=0.01)
    view = api.run(sage, settings)
    assert view.summary.evidence_states == {EvidenceState.CACHED: 2}
    rows = list(api.export_rows(view.manifest.run_id, settings))
    assert {row["evidence_state"] for row in rows} == {"cached"}


@pytest.mark.parametrize(
    "change",
    [{}, {"offline": True}, {"search": "memory"}, {"search": "memory", "embedder": "none"}],
)
def test_a_run_goes_on_when_the_record_has_grown(
    settings: Settings, sage: RunRequest, change: dict[str, Any]
) -> None:
    asked = replace(settings, **change)
    run_id = api.run(replace(sage, limit=1), asked).manifest.run_id
    recorded(settings, "capital of Chad", "N'Djamena, known before as Fort-Lamy.")
    # Flags of the first command need not be typed again.
    view = api.resume(run_id, settings, limit=2)
    assert view.summary.outcomes == {"scored": 2}


def test_what_a_corpus_finds_does_not_depend_on_the_record(
    settings: Settings, tmp_path: Path
) -> None:
    query = "capital of Peru"
    with closing(wiring.open_search(settings, Ears())) as search:
        alone = search.identity()
    fresh = found(settings, query)
    for other in (query, "Capital of PERU", "capital of Chad"):
        recorded(settings, other, "Lima is no capital of Peru.")
    again = found(settings, query)
    assert [one.model_copy(update={"found_at": ""}) for one in again] == list(fresh)
    with closing(wiring.open_search(settings, Ears())) as search:
        assert search.identity() == alone == CorpusSearch("mine", settings.corpora_path).identity()


def test_without_weights_a_run_records_quietly_and_a_later_one_embeds(
    settings: Settings, sage: RunRequest, tmp_path: Path
) -> None:
    bare = replace(settings, embedder="all-minilm-l6-v2-int8", models_dir=str(tmp_path / "none"))
    ears = Ears()
    assert api.run(sage, bare, ears).summary.outcomes == {"scored": 2}
    assert "evidence" not in ears.phases
    passages, vectors = counts(bare)
    assert passages > 0
    assert vectors == 0
    assert "models pull" in api.evidence_stats(bare).problem
    assert found(replace(bare, search="memory"), "A museum on an island")
    # Another search of a run with an embedder gives all of them vectors, the old ones too.
    found(settings, "capital of Peru once more")
    passages, vectors = counts(settings)
    assert vectors == passages > 0


def test_a_search_answered_from_the_record_embeds_what_lacks_vectors(settings: Settings) -> None:
    settings = replace(settings, search="counted:x")
    found(replace(settings, embedder="none"), "capital of Peru")
    assert counts(settings) == (1, 0)
    assert found(settings, "capital of Peru")
    assert len(Counted.asked) == 1
    assert counts(settings) == (1, 1)


@pytest.mark.parametrize("change", [{"search": "memory"}, {"offline": True}])
def test_a_memory_searched_by_words_only_is_a_warning_of_the_run(
    settings: Settings, sage: RunRequest, tmp_path: Path, change: dict[str, Any]
) -> None:
    bare: dict[str, Any] = {
        "embedder": "all-minilm-l6-v2-int8",
        "models_dir": str(tmp_path / "none"),
    }
    (warning,) = api.run(sage, replace(settings, **bare, **change)).summary.warnings
    assert "by words only" in warning
    assert "models pull all-minilm-l6-v2-int8" in warning


def test_a_failing_embedder_is_told_and_fails_nothing(
    settings: Settings, sage: RunRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    def embed(self: HashingEmbedder, texts: list[str], **_: Any) -> Any:
        raise BackendError("The embedder broke.")

    monkeypatch.setattr(HashingEmbedder, "embed", embed)
    ears = Hearing()
    assert api.run(sage, settings, ears).summary.outcomes == {"scored": 2}
    assert sum("The embedder broke." in detail for detail in ears.details) == 1


def test_a_backlog_does_not_hold_up_the_end_of_a_run(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, batches = threading.Event(), []
    told_to_stop: list[threading.Event] = []

    def embed(self: HashingEmbedder, texts: list[str], **_: Any) -> Any:
        batches.append(len(texts))
        began.set()
        assert told_to_stop[0].wait(30)
        return np.eye(len(texts), 256, dtype=np.float32)

    monkeypatch.setattr(HashingEmbedder, "embed", embed)
    monkeypatch.setattr(remember, "_GRACE_S", 0.0)
    with closing(Record(settings.evidence_path)) as record:
        record.add_passages([hit(f"Passage {n}").passage for n in range(200)])
    search: Any = wiring.open_search(settings, Ears())
    told_to_stop.append(search._behind._stopped)
    # The search is answered while the first batch waits.
    assert asyncio.run(search.search("capital of Peru", limit=3))
    assert began.wait(30)
    search.close()
    passages, vectors = counts(settings)
    assert len(batches) == 1
    assert vectors == batches[0] < passages


def test_a_damaged_record_is_warned_of_and_left_alone(settings: Settings, sage: RunRequest) -> None:
    path = settings.evidence_path / "record.sqlite"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"no database " * 1000)
    for asked in (settings, replace(settings, offline=True)):
        view = api.run(sage, asked)
        assert view.summary.outcomes == {"scored": 2}
        assert view.summary.evidence_states
        (warning,) = view.summary.warnings
        assert "Nothing is recorded" in warning
        assert f"mv '{path}'" in warning
    assert path.read_bytes() == b"no database " * 1000
    with pytest.raises(StorageError, match="damaged"):
        api.run(sage, replace(settings, search="memory"))


def test_a_record_that_fails_under_way_is_told_once_and_fails_no_search(
    settings: Settings, sage: RunRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    def keep(self: Record, *_: Any, **__: Any) -> None:
        raise StorageError("The disk is full.")

    monkeypatch.setattr(Record, "keep", keep)
    ears = Ears()
    view = api.run(sage, settings, ears)
    assert view.summary.outcomes == {"scored": 2}
    assert view.summary.failed_searches == 0
    assert ears.phases.count("evidence record") == 1


def test_offline_refuses_what_needs_the_network(settings: Settings, sage: RunRequest) -> None:
    with pytest.raises(UsageError, match="needs the network") as caught:
        api.run(sage, replace(settings, search="counted:x", offline=True))
    assert "--search memory" in caught.value.remedy
    assert Counted.asked == []
    with pytest.raises(UsageError, match="No search provider is called `memori`"):
        api.run(sage, replace(settings, search="memori", offline=True))


def test_a_provider_is_closed_where_the_record_cannot_be_made(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = []
    monkeypatch.setattr(Counted, "close", lambda self: closed.append(self.identity()))
    monkeypatch.setattr(evidence, "_ON_THIS_MACHINE", frozenset({"counted", "memory"}))
    asked = replace(settings, search="counted:x", offline=True, memory_similarity=2.0)
    with pytest.raises(UsageError, match="memory_similarity"):
        wiring.open_search(asked, Ears())
    assert len(closed) == 1


def test_recording_needs_nothing_that_is_slow_to_import() -> None:
    code = (
        "import sys, offline_judge.retrieval.evidence.remember;"
        "heavy = {'numpy', 'onnxruntime', 'chromadb'};"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
