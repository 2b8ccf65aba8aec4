"""Embedding behind a run, and the index it fills where one is going to be read."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from evidence_parts import Random, build_index, filled_record, index_of, passage, table_of

from offline_judge.errors import StorageError
from offline_judge.retrieval.evidence import vectors
from offline_judge.retrieval.evidence.behind import EmbeddingBehind
from offline_judge.retrieval.evidence.chroma import ChromaIndex
from offline_judge.retrieval.evidence.fused import RecordSearch
from offline_judge.retrieval.evidence.lock import IndexLock
from offline_judge.retrieval.evidence.record import Record
from offline_judge.settings import load_settings
from offline_judge.wiring import evidence

COUNT = 1500


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """So few vectors are too many to be searched one by one."""
    monkeypatch.setattr(vectors, "EXACT_UP_TO", 1000)


def embed_behind(folder: Path) -> list[str]:
    """What the thread says when all is embedded and indexed."""
    embedder = Random()
    behind = EmbeddingBehind(folder, lambda: (embedder.id, embedder.dimension), lambda: embedder)
    behind.wake()
    behind.close(60)
    return behind.told()


def test_an_embedder_is_opened_only_where_something_lacks_a_vector(tmp_path: Path) -> None:
    embedder, opened = Random(), list[Random]()
    record = filled_record(tmp_path, 3, embedder)

    def open_embedder() -> Random:
        opened.append(embedder)
        return embedder

    for lacking in (0, 1):
        record.add_passages(passage(f"new{n}") for n in range(lacking))
        behind = EmbeddingBehind(tmp_path, lambda: (embedder.id, embedder.dimension), open_embedder)
        behind.wake()
        behind.close(60)
        assert len(opened) == lacking
        assert table_of(record, embedder).missing_count() == 0
    record.close()


def test_an_index_that_nobody_reads_is_not_filled(tmp_path: Path) -> None:
    filled_record(tmp_path, COUNT, Random()).close()
    assert embed_behind(tmp_path) == []
    assert not (tmp_path / "chroma").exists()


@pytest.mark.usefixtures("few")
def test_an_index_that_is_read_is_filled_and_a_damaged_one_anew_and_told(tmp_path: Path) -> None:
    filled_record(tmp_path, COUNT, Random()).close()
    for damaged in (False, True):
        if damaged:
            shutil.rmtree(next(tmp_path.glob("chroma/*/data-*")))
        told = embed_behind(tmp_path)
        assert len(told) == damaged
        assert all("damaged" in sentence for sentence in told)
        with closing(Record(tmp_path)) as record:
            assert index_of(record, Random(), []).waiting() == 0


@pytest.mark.usefixtures("few")
def test_an_index_that_cannot_be_filled_is_told_once_and_embedding_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, asked = [], threading.Event()

    def fail(self: ChromaIndex) -> bool:
        opened.append(self)
        asked.set()
        raise StorageError("Chroma cannot be used: broken.")

    monkeypatch.setattr(ChromaIndex, "open", fail)
    embedder = Random()
    record = filled_record(tmp_path, COUNT, embedder)
    behind = EmbeddingBehind(tmp_path, lambda: (embedder.id, embedder.dimension), lambda: embedder)
    behind.wake()
    assert asked.wait(60)
    record.add_passages([passage("late")])
    behind.wake()
    behind.close(60)
    told = behind.told()
    assert table_of(record, embedder).missing_count() == 0
    assert [("broken" in one, "words only" in one) for one in told] == [(True, False)]
    assert len(opened) == 1
    record.close()


Damage = Callable[[Path], object]


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize(
    "damage",
    [
        lambda folder: shutil.rmtree(next(folder.glob("chroma/*/data-*"))),
        lambda folder: next(folder.glob("chroma/*/state.json")).write_text("{"),
        lambda folder: shutil.rmtree(folder / "chroma"),
    ],
    ids=["data gone", "state damaged", "never filled"],
)
def test_an_index_is_whole_before_it_answers_and_let_go_of_after(
    tmp_path: Path, damage: Damage
) -> None:
    settings = replace(load_settings(environ={}), data_dir=str(tmp_path))
    folder, embedder, told = settings.evidence_path, Random(), list[str]()
    build_index(folder, COUNT)
    damage(folder)
    with closing(Record(folder)) as record:
        index = evidence.large_index(record, embedder, settings, told.append)
        assert index is not None
        assert index.waiting() == 0
        assert f"{COUNT:,} vectors are put into the vector index first." in told
        with closing(RecordSearch(record, embedder, index)) as search:
            assert search.find("passage number 7", limit=1)[0].passage.id == "p7"
        lock = IndexLock(folder / "chroma" / "lock")
        assert lock.acquire()
        lock.release()


@pytest.mark.usefixtures("few")
def test_exact_search_answers_where_the_index_cannot_be_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: ChromaIndex) -> int:
        raise StorageError("Chroma cannot be filled: broken.")

    monkeypatch.setattr(ChromaIndex, "fill", fail)
    settings = replace(load_settings(environ={}), data_dir=str(tmp_path))
    told: list[str] = []
    with closing(filled_record(settings.evidence_path, COUNT, Random())) as record:
        assert evidence.large_index(record, Random(), settings, told.append) is None
    assert "broken" in told[-1]
    assert "Exact search" in told[-1]
    lock = IndexLock(settings.evidence_path / "chroma" / "lock")
    assert lock.acquire()
    lock.release()
