"""The record of evidence: what is kept, what counts as the same, and what a bad file comes to."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import ClassVar

import pytest
from evidence_parts import Random, embed_all, hits, passage, question, table_of

from offline_judge.domain.evidence import SearchHit
from offline_judge.errors import SearchError, StorageError
from offline_judge.retrieval.embedding.hashing import HashingEmbedder
from offline_judge.retrieval.evidence.fused import RecordSearch
from offline_judge.retrieval.evidence.model import Filters, Scope
from offline_judge.retrieval.evidence.record import Record
from offline_judge.retrieval.evidence.remember import RememberingSearch, Voices
from offline_judge.retrieval.evidence.vectors import Space, VectorTable, embed_missing

ROOT = Path(__file__).resolve().parents[3]
HERE = Path(__file__).resolve().parent
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


@pytest.fixture
def record(tmp_path: Path) -> Iterator[Record]:
    kept = Record(tmp_path / "evidence")
    yield kept
    kept.close()


def age(record: Record, days: int) -> None:
    """Make all of it that much older."""
    then = (datetime.now(UTC) - timedelta(days=days)).strftime("%Y-%m-%dT%H:%M:%SZ")
    with record.database.writing() as connection:
        connection.execute("UPDATE queries SET found_at = ?", (then,))


def test_what_was_found_comes_back_whole_with_its_time(record: Record) -> None:
    one = passage(1, "The Nile is long.", title="Nile", url="https://a.example/n", date="2024-05")
    two = passage(2, "The Rhine is short.", source="corpus:wiki", start=7, end=26)
    record.keep(question("long rivers"), hits(one, two), limit=5)
    answer = record.look_up(question("long rivers"), limit=5)
    assert answer is not None
    assert [hit.passage for hit in answer.hits] == [one, two]
    assert [hit.score for hit in answer.hits] == [1.0, 0.5]
    assert TIME.fullmatch(answer.found_at)
    assert {hit.found_at for hit in answer.hits} == {answer.found_at}
    assert not any(hit.cached for hit in answer.hits)


@pytest.mark.parametrize(
    "asked",
    ["long rivers", "  Long\tRIVERS\n", "\uff4c\uff4f\uff4e\uff47 rivers"],
    ids=["as it was", "case and space", "full width"],
)
def test_queries_are_the_same_beyond_case_space_and_form(record: Record, asked: str) -> None:
    record.keep(question("Long rivers"), hits(passage(1)), limit=3)
    assert record.look_up(question(asked), limit=3) is not None


def test_each_part_of_the_key_makes_another_search(record: Record) -> None:
    asked = question("rivers", scope=Scope(locale="pt", date_from="2020", max_age_days=9))
    record.keep(asked, hits(passage(1)), limit=3)
    others = [
        replace(asked, query="river"),
        replace(asked, provider="memory"),
        replace(asked, identity={"name": "news"}),
        *(
            replace(asked, scope=replace(asked.scope, **change))
            for change in (
                {"locale": "ja"},
                {"date_from": "2021"},
                {"date_to": "2022"},
                {"max_age_days": 8},
            )
        ),
    ]
    assert record.look_up(asked, limit=3) is not None
    assert [record.look_up(other, limit=3) for other in others] == [None] * len(others)


def test_what_is_older_than_the_limit_is_not_known(record: Record) -> None:
    limited = question("rivers", scope=Scope(max_age_days=3))
    for asked in (limited, question("rivers")):
        record.keep(asked, hits(passage(1)), limit=3)
    age(record, 4)
    assert record.look_up(limited, limit=3) is None
    assert record.look_up(question("rivers"), limit=3) is not None


def test_ranks_that_were_never_asked_for_are_not_known(record: Record) -> None:
    asked = question("rivers")
    record.keep(asked, hits(passage(1), passage(2)), limit=2)
    assert record.look_up(asked, limit=3) is None
    assert record.look_up(asked, limit=2, offset=2) is None
    record.keep(asked, hits(passage(3), first=3), limit=2, offset=2)
    answer = record.look_up(asked, limit=4)
    assert answer is not None
    assert [hit.passage.id for hit in answer.hits] == ["p1", "p2", "p3"]
    # It gave one where two were asked for: there are no more.
    assert record.look_up(asked, limit=50) is not None


class Provider:
    """Counts its searches; fails, or finds nothing, as it is told."""

    name: ClassVar[str] = "corpus"

    def __init__(self) -> None:
        self.searches = 0
        self.failing = False

    def identity(self) -> dict[str, str]:
        return {"name": "wiki"}

    async def search(self, query: str, *, limit: int, offset: int = 0) -> tuple[SearchHit, ...]:
        self.searches += 1
        if self.failing:
            raise SearchError("the network is down")
        return ()

    def close(self) -> None:
        pass


async def test_a_failure_is_never_kept_and_an_empty_result_is(tmp_path: Path) -> None:
    provider = Provider()
    search = RememberingSearch(provider, Record(tmp_path), Scope())
    provider.failing = True
    for _ in range(2):
        with pytest.raises(SearchError):
            await search.search("rivers", limit=3)
    provider.failing = False
    assert await search.search("rivers", limit=3) == ()
    assert await search.search("rivers", limit=3) == ()
    search.close()
    assert provider.searches == 3


async def test_a_record_that_fails_is_told_once_and_fails_no_search(tmp_path: Path) -> None:
    told: list[str] = []
    record = Record(tmp_path)
    search = RememberingSearch(Provider(), record, Scope(), voices=Voices(fault=told.append))
    record.close()
    for _ in range(2):
        assert await search.search("rivers", limit=3) == ()
    search.close()
    assert len(told) == 1


WRITER = """
import sys
from pathlib import Path
from evidence_parts import hits, passage, question
from offline_judge.retrieval.evidence.record import Record
folder, name = Path(sys.argv[1]), sys.argv[2]
print("ready", flush=True)
sys.stdin.readline()
record = Record(folder)
for n in range(150):
    both = passage("shared", "What both find."), passage(f"{name}{n}")
    record.keep(question(f"{name} {n}"), hits(*both), limit=2)
record.close()
"""


def child(code: str, *arguments: str) -> subprocess.Popen[str]:
    """A real process that runs some lines with the repository on its path."""
    env = os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{HERE}"}
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.Popen(command, env=env, text=True, stdin=pipe, stdout=pipe, stderr=pipe)


def test_two_processes_begin_and_fill_one_record_at_once(tmp_path: Path) -> None:
    children = [child(WRITER, str(tmp_path), name) for name in ("a", "b")]
    for process in children:
        assert process.stdout is not None
        process.stdout.readline()
    for process in children:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    ends = [(process.communicate(timeout=60), process.returncode) for process in children]
    assert [code for _, code in ends] == [0, 0], ends
    record = Record(tmp_path)
    stats = record.stats()
    assert (stats.queries, stats.passages) == (300, 301)
    for name in ("a", "b"):
        answer = record.look_up(question(f"{name} 149"), limit=2)
        assert answer is not None
        assert [hit.passage.id for hit in answer.hits] == ["pshared", f"p{name}149"]
    record.close()


def test_ten_thousand_equal_passages_are_one_and_hide_no_other(record: Record) -> None:
    record.add_passages(passage(n, "The Nile is a long river.") for n in range(10_000))
    others = ["The Rhine is a river.", "A river has banks."]
    record.add_passages(passage(f"other{n}", text) for n, text in enumerate(others))
    embedder = HashingEmbedder()
    table = VectorTable(record, Space(embedder.id, embedder.dimension))
    assert embed_missing(table, embedder, limit=100)[0] == 3
    search = RecordSearch(record, embedder)
    found = search.find("a long river", limit=5)
    search.close()
    assert sorted(one.passage.text for one in found) == sorted(
        ["The Nile is a long river.", *others]
    )
    assert record.stats().passages == 3


def test_a_question_of_5000_characters_finds_what_it_is_about(record: Record) -> None:
    record.add_passages([passage(1, "Lima is the capital of Peru."), passage(2, "Cats purr.")])
    asked = ("Which city is the capital of Peru? " * 200)[:5000]
    record.keep(question(asked), hits(passage(1, "Lima is the capital of Peru.")), limit=1)
    answer = record.look_up(question(asked), limit=1)
    assert answer is not None
    for embedder in (None, HashingEmbedder()):
        search = RecordSearch(record, embedder)
        assert search.find(asked, limit=1)[0].passage.id == "p1"
        search.close()


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ("Qual é a capital de Portugal?", "Lisboa é a capital de Portugal."),
        ("日本の首都はどこですか", "東京は日本の首都です。"),
    ],
    ids=["portuguese", "japanese"],
)
def test_other_languages_are_found_by_words_and_by_vectors(
    record: Record, asked: str, text: str
) -> None:
    record.add_passages(
        [passage(1, text), passage(2, "O gato dorme."), passage(3, "猫が寝ている。")]
    )
    record.keep(question(asked), hits(passage(1, text)), limit=1)
    assert record.look_up(question(f" {asked} "), limit=1) is not None
    for embedder in (None, HashingEmbedder()):
        search = RecordSearch(record, embedder)
        assert search.find(asked, limit=1)[0].passage.text == text
        search.close()


def test_a_filter_asks_the_word_index_once(record: Record) -> None:
    record.add_passages(passage(n, source=f"corpus:{n % 2}") for n in range(40))
    said: list[str] = []
    record.database._connection.set_trace_callback(said.append)
    search = RecordSearch(record, None)
    found = search.find("passage number", limit=50, filters=Filters(sources=("corpus:1",)))
    search.close()
    record.database._connection.set_trace_callback(None)
    assert {one.passage.source for one in found} == {"corpus:1"}
    assert len(found) == 20
    asked = next(sql for sql in said if "MATCH" in sql)
    plan = record.database.rows(f"EXPLAIN QUERY PLAN {asked}")
    # `=` would be a look-up for each passage that the filter lets through.
    scans = [row[3].rpartition(" ")[2] for row in plan if "words VIRTUAL" in row[3]]
    assert scans
    assert not any("=" in scan for scan in scans)


def test_half_a_character_harms_nothing(record: Record) -> None:
    broken = "half \ud83d of it"
    record.keep(question(broken), hits(passage(1, broken, title=broken)), limit=1)
    answer = record.look_up(question(broken), limit=1)
    assert answer is not None
    assert [hit.passage.text for hit in answer.hits] == ["half ? of it"]
    search = RecordSearch(record, None)
    search.find(broken, limit=1)
    search.close()


def foreign(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE mine (a)")
    connection.close()


def newer(path: Path) -> None:
    Record(path.parent).close()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()


@pytest.mark.parametrize(
    ("make", "remedy"),
    [
        (lambda path: path.write_bytes(b"no database at all" * 500), "mv '"),
        (foreign, "mv '"),
        (newer, "Update this program"),
    ],
    ids=["damaged", "foreign", "newer"],
)
def test_a_file_that_is_no_record_is_named_and_left_alone(
    tmp_path: Path, make: Callable[[Path], object], remedy: str
) -> None:
    path = tmp_path / "record.sqlite"
    make(path)
    before = path.read_bytes()
    with pytest.raises(StorageError) as caught:
        Record(tmp_path)
    assert caught.value.where == str(path)
    assert remedy in caught.value.remedy
    assert path.read_bytes() == before


def test_damage_inside_is_told_when_it_is_met(tmp_path: Path) -> None:
    record = Record(tmp_path)
    record.add_passages(passage(n) for n in range(3000))
    record.close()
    path = tmp_path / "record.sqlite"
    whole = bytearray(path.read_bytes())
    whole[8192:] = b"\xa5" * (len(whole) - 8192)
    path.write_bytes(whole)
    with pytest.raises(StorageError, match="damaged") as caught:
        Record(tmp_path).stats()
    assert caught.value.where == str(path)
    assert path.read_bytes() == whole


FULL = """
import json, resource, sys
from pathlib import Path
from evidence_parts import Random, embed_all, hits, passage, question, table_of
from offline_judge.errors import StorageError
from offline_judge.retrieval.evidence.record import Record
record, kind = Record(Path(sys.argv[1])), sys.argv[2]
embedder = Random()
limit = 400_000
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
kept = 0
try:
    for n in range(100_000):
        if kind == "results":
            both = [passage(f"{n}-{k}", f"{n} {k} " + "long " * 100) for k in range(3)]
            record.keep(question(f"query {n}"), hits(*both), limit=3)
            kept += 1
        else:
            record.add_passages(passage(f"{n}-{k}") for k in range(40))
            embed_all(table_of(record, embedder), embedder)
            kept += 40
except StorageError as error:
    print(json.dumps({"kept": kept, "error": str(error), "where": error.where}))
"""


@pytest.mark.parametrize("kind", ["results", "embedding"])
def test_a_full_disk_keeps_what_was_kept_and_nothing_by_halves(tmp_path: Path, kind: str) -> None:
    process = child(FULL, str(tmp_path), kind)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    told = json.loads(out)
    assert told["where"] == str(tmp_path / "record.sqlite")
    assert "Make room" in told["error"]
    assert told["kept"] > 0
    record = Record(tmp_path)
    if kind == "results":
        for n in range(told["kept"]):
            answer = record.look_up(question(f"query {n}"), limit=3)
            assert answer is not None
            assert len(answer.hits) == 3
        assert record.look_up(question(f"query {told['kept']}"), limit=3) is None
        assert record.stats().passages == 3 * told["kept"]
    else:
        embedder = Random()
        table = table_of(record, embedder)
        assert table.count() >= told["kept"]
        missing = table.missing_count()
        embed_all(table, embedder)
        assert (embedder.texts, table.missing_count()) == (missing, 0)
    assert record.database.one("PRAGMA integrity_check") == "ok"
    record.close()


def test_what_was_searched_is_for_its_owner_only(tmp_path: Path) -> None:
    mask = os.umask(0)
    try:
        record = Record(tmp_path / "evidence")
        record.keep(question("private"), hits(passage(1)), limit=1)
    finally:
        os.umask(mask)
    files = list((tmp_path / "evidence").iterdir())
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}
    assert len(files) > 1  # the log beside it, too
    record.close()
