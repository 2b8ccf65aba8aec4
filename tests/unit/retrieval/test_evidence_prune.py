"""Pruning the record: what goes, what hangs on it and goes too, and what stays."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from offline_judge.domain.evidence import Passage, SearchHit
from offline_judge.errors import StorageError
from offline_judge.retrieval.embedding.hashing import HashingEmbedder
from offline_judge.retrieval.evidence import prune as pruning
from offline_judge.retrieval.evidence.fused import RecordSearch
from offline_judge.retrieval.evidence.history import passage_numbers, read_history
from offline_judge.retrieval.evidence.model import Filters, Question
from offline_judge.retrieval.evidence.prune import prune
from offline_judge.retrieval.evidence.record import Record
from offline_judge.retrieval.evidence.vectors import Matrix, Space, VectorTable, embed_missing


@pytest.fixture
def record(tmp_path: Path) -> Iterator[Record]:
    with closing(Record(tmp_path)) as opened:
        yield opened


def hit(text: str, source: str = "corpus:a", rank: int = 1) -> SearchHit:
    passage = Passage(
        id=f"{text}#0", document_id=text, title="T", text=text, end=len(text), source=source
    )
    return SearchHit(rank=rank, score=1.5, passage=passage)


def ask(query: str, source: str = "a") -> Question:
    return Question("corpus", {"name": source}, query)


def keep(record: Record, query: str, *texts: str, source: str = "a") -> None:
    hits = [hit(text, f"corpus:{source}", n) for n, text in enumerate(texts, 1)]
    record.keep(ask(query, source), hits, limit=5)


def age(record: Record, days: int = 30) -> None:
    """Make all that is recorded so far older."""
    stamp = pruning._days_ago(days)
    with record.database.writing() as connection:
        for table in ("queries", "places", "passages", "documents"):
            connection.execute(f"UPDATE {table} SET found_at = ?", (stamp,))


def texts(record: Record) -> list[str]:
    return [row[0] for row in record.database.rows("SELECT text FROM passages ORDER BY text")]


def embed(record: Record) -> VectorTable:
    embedder = HashingEmbedder()
    table = VectorTable(record, Space(embedder.id, embedder.dimension))
    embed_missing(table, embedder, limit=100)
    return table


def test_what_is_old_goes_with_its_vectors_words_and_answers(record: Record) -> None:
    keep(record, "old", "ancient river")
    age(record)
    keep(record, "new", "young island")
    table = embed(record)
    pruned = prune(record, older_than=7)
    assert (pruned.passages, pruned.documents, pruned.queries, pruned.vectors) == (1, 1, 1, 1)
    assert pruned.left == 1
    assert texts(record) == ["young island"]
    assert table.count() == 1
    assert record.look_up(ask("old"), limit=1) is None
    assert record.look_up(ask("new"), limit=1) is not None
    with closing(RecordSearch(record, None)) as search:
        assert search.find("ancient river", limit=5) == ()
        assert [found.passage.text for found in search.find("island", limit=5)] == ["young island"]


def test_what_was_found_again_is_not_old(record: Record) -> None:
    keep(record, "old", "river", "lake")
    age(record)
    keep(record, "new", "river")
    assert prune(record, older_than=7).queries == 1
    assert texts(record) == ["river"]
    assert record.look_up(ask("new"), limit=1) is not None


def test_an_answer_that_names_what_goes_goes_whole(record: Record) -> None:
    # Kept with a hit fewer, it would be taken for all that the provider found.
    shared = [hit("river", "corpus:a"), hit("lake", "corpus:b", 2)]
    record.keep(Question("both", {}, "water"), shared, limit=2)
    prune(record, source="corpus:b")
    assert texts(record) == ["river"]
    assert record.look_up(Question("both", {}, "water"), limit=1) is None


def test_a_passage_that_another_source_has_too_stays(record: Record) -> None:
    keep(record, "q", "river", source="a")
    keep(record, "q", "river", source="b")
    embed(record)
    pruned = prune(record, source="corpus:a")
    assert (pruned.passages, pruned.vectors, pruned.documents, pruned.queries) == (0, 0, 1, 1)
    with closing(RecordSearch(record, None)) as search:
        (found,) = search.find("river", limit=5)
        assert found.passage.source == "corpus:b"
        assert search.find("river", limit=5, filters=Filters(sources=("corpus:a",))) == ()


def test_empty_answers_of_a_source_go_with_it(record: Record) -> None:
    keep(record, "nothing there", source="a")
    keep(record, "nothing there", source="b")
    assert prune(record, source="corpus:a").queries == 1
    assert record.look_up(ask("nothing there", "b"), limit=1) is not None


def test_age_and_source_together_delete_what_both_mean(record: Record) -> None:
    keep(record, "q", "old a", source="a")
    keep(record, "q", "old b", source="b")
    age(record)
    keep(record, "r", "new a", source="a")
    prune(record, older_than=7, source="corpus:a")
    assert texts(record) == ["new a", "old b"]


def test_a_dry_run_tells_the_same_and_deletes_nothing(record: Record) -> None:
    keep(record, "q", "river", "lake")
    embed(record)
    told = prune(record, older_than=0, dry_run=True)
    assert texts(record) == ["lake", "river"]
    assert record.look_up(ask("q"), limit=2) is not None
    done = prune(record, older_than=0)
    assert told.dry_run
    assert (told.queries, told.documents, told.passages, told.vectors, told.left) == (
        done.queries,
        done.documents,
        done.passages,
        done.vectors,
        done.left,
    )
    assert texts(record) == []


def test_vectors_in_memory_follow(record: Record) -> None:
    keep(record, "q", "river", source="a")
    keep(record, "r", "lake", source="b")
    table = embed(record)
    matrix = Matrix(table)
    matrix.refresh()
    prune(record, source="corpus:a")
    matrix.refresh()
    numbers, _ = matrix.nearest(np.ones(256, np.float32), 5)
    assert len(matrix) == 1
    assert numbers.tolist() == passage_numbers(record, "lake#0")


def test_room_is_given_back(record: Record) -> None:
    keep(record, "q", *(f"{n} " + "long text " * 500 for n in range(50)))
    pruned = prune(record, older_than=0)
    assert pruned.freed > 100_000
    assert pruning.record_size(record.folder) < 150_000


def test_a_prune_that_fails_deletes_nothing(
    record: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(record, "q", "river", "lake")
    before = record.stats()
    # The last of the lists, so that all else is deleted already.
    monkeypatch.setattr(pruning, "_LISTS", ("queries", "places", "passages", "no_such"))
    with pytest.raises(StorageError):
        prune(record, older_than=0)
    monkeypatch.undo()
    assert record.stats().model_copy(update={"size": 0}) == before.model_copy(update={"size": 0})
    with closing(RecordSearch(record, None)) as search:
        assert len(search.find("river lake", limit=5)) == 2
    assert prune(record, older_than=0).passages == 2


@pytest.mark.parametrize("days", [10**6, 10**12])
def test_nothing_is_older_than_the_calendar(record: Record, days: int) -> None:
    keep(record, "q", "river")
    assert prune(record, older_than=days).passages == 0


def test_a_history_names_places_and_queries(record: Record) -> None:
    keep(record, "first", "lake", "river", source="a")
    keep(record, "second", "river", source="b")
    embed(record)
    (number,) = passage_numbers(record, "river#0")
    history = read_history(record, number)
    assert history is not None
    assert {place.source for place in history.places} == {"corpus:a", "corpus:b"}
    asked = {(found.query, found.provider, found.rank) for found in history.queries}
    assert asked == {("first", "corpus:a", 2), ("second", "corpus:b", 1)}
    assert history.embedders == (HashingEmbedder().id,)
    assert passage_numbers(record, str(number)) == [number]


@pytest.mark.parametrize("id", ["", "0", "-1", "99", "9" * 40, "²", "river", "\ud800", "'; --"])
def test_an_id_that_is_none_has_no_numbers(record: Record, id: str) -> None:
    keep(record, "q", "lake")
    assert passage_numbers(record, id) == []


def test_an_id_that_had_two_texts_has_two_numbers(record: Record) -> None:
    for text in ("before", "after"):
        passage = hit(text).passage.model_copy(update={"id": "same#0"})
        record.keep(ask(text), [SearchHit(rank=1, score=1, passage=passage)], limit=1)
    assert passage_numbers(record, "same#0") == [2, 1]
