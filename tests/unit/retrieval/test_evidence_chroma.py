"""Chroma as a cache: its lock, its filters, its files, and what it holds of whom."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from evidence_parts import (
    DIMENSION,
    INDEXED,
    Random,
    check_answers,
    embed_all,
    filled_record,
    index_of,
    passage,
    recall,
    table_of,
    unit,
)

from offline_judge.errors import StorageError
from offline_judge.retrieval.evidence import chroma
from offline_judge.retrieval.evidence.chroma_process import ChromaProcess, IndexFaultError
from offline_judge.retrieval.evidence.fused import RecordSearch
from offline_judge.retrieval.evidence.lock import IndexLock
from offline_judge.retrieval.evidence.model import Filters
from offline_judge.retrieval.evidence.places import Places
from offline_judge.retrieval.evidence.prune import prune
from offline_judge.retrieval.evidence.record import Record
from offline_judge.retrieval.evidence.vectors import Matrix, Space

ROOT = Path(__file__).resolve().parents[3]
HERE = Path(__file__).resolve().parent


@pytest.fixture
def folder(built_evidence: Path, tmp_path: Path) -> Path:
    """An index that a test may damage."""
    return Path(shutil.copytree(built_evidence, tmp_path / "evidence"))


def test_a_child_killed_between_queries_costs_no_answer(folder: Path) -> None:
    embedder, told = Random(), list[str]()
    record = Record(folder)
    index = index_of(record, embedder, told)
    assert index.open()
    assert index._child is not None
    os.kill(index._child.pid, signal.SIGKILL)
    assert recall(index, table_of(record, embedder)) == 1.0
    index.close()
    record.close()
    assert "exact search answers instead" in told[0]
    assert check_answers(folder, INDEXED) == []


def test_no_file_of_chromas_grows_beyond_its_room(tmp_path: Path) -> None:
    lock = IndexLock(tmp_path / "lock")
    assert lock.acquire()
    data, room = tmp_path / "data", 400_000
    data.mkdir()
    child = ChromaProcess(data, "small", DIMENSION, lock.descriptor, room)
    vectors = np.stack([unit(n) for n in range(4000)])
    with pytest.raises(IndexFaultError):
        child.add(range(4000), vectors)
    child.close()
    lock.release()
    assert max(path.stat().st_size for path in data.rglob("*")) <= room


def test_a_folder_that_cannot_be_written_is_named_and_lets_go_of_the_lock(folder: Path) -> None:
    embedder = Random()
    record = Record(folder)
    index = index_of(record, embedder, [])
    (index.folder / "state.part").mkdir()
    with pytest.raises(StorageError) as caught:
        index.open()
    assert str(index.folder) in caught.value.where
    other = IndexLock(folder / "chroma" / "lock")
    assert other.acquire()
    other.release()
    record.close()


WATCH = """
import sys
out = open({path!r}, "a", buffering=1)
out.write("watching\\n")
WATCHED = ("socket.connect", "socket.bind", "socket.getaddrinfo", "socket.sendto")
sys.addaudithook(lambda event, args: out.write(event + "\\n") if event in WATCHED else None)
"""


def open_addresses(pid: int) -> list[str]:
    """Internet sockets of a process as the system lists them; native code is in there too."""
    process = Path(f"/proc/{pid}")
    links = [str(link.readlink()) for link in (process / "fd").iterdir()]
    inodes = {link[8:-1] for link in links if link.startswith("socket:[")}
    tables = [(process / "net" / name).read_text() for name in ("tcp", "tcp6", "udp", "udp6")]
    lines = [line for table in tables for line in table.splitlines()[1:]]
    return [line for line in lines if line.split()[9] in inodes]


def test_chroma_opens_no_socket(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = folder / "watched"
    (folder / "site").mkdir()
    (folder / "site" / "sitecustomize.py").write_text(WATCH.format(path=str(log)))
    monkeypatch.setenv("PYTHONPATH", str(folder / "site"))
    # Settings that would have it send something, were they listened to.
    monkeypatch.setenv("ANONYMIZED_TELEMETRY", "True")
    monkeypatch.setenv("CHROMA_OTEL_COLLECTION_ENDPOINT", "http://127.0.0.1:9")
    embedder = Random()
    record = Record(folder)
    index = index_of(record, embedder, [])
    assert index.open()
    index.clear()
    index.fill()
    assert recall(index, table_of(record, embedder)) >= 0.98
    assert index._child is not None
    assert open_addresses(index._child.pid) == []
    index.close()
    record.close()
    assert set(log.read_text().split()) == {"watching"}


HOLDER = """
import sys
from pathlib import Path
from evidence_parts import Random, index_of
from offline_judge.retrieval.evidence.record import Record
index = index_of(Record(Path(sys.argv[1])), Random(), [])
print(index.open(), flush=True)
sys.stdin.readline()
index.close()
"""


def holder(folder: Path) -> subprocess.Popen[str]:
    """Another process that has the index open."""
    env = os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{HERE}"}
    command = [sys.executable, "-c", HOLDER, str(folder)]
    process = subprocess.Popen(
        command, env=env, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "True\n"
    return process


def test_a_second_process_answers_exactly_records_more_and_says_who_holds(folder: Path) -> None:
    embedder, told = Random(), list[str]()
    other = holder(folder)
    try:
        record = Record(folder)
        index = index_of(record, embedder, told)
        assert not index.open()
        assert f"process {other.pid}" in told[0]
        assert "exact search" in told[0]
        record.add_passages([passage("new", "A new passage.")])
        embed_all(table_of(record, embedder), embedder)
        search = RecordSearch(record, embedder, index if index.open() else None)
        assert search.find("A new passage.", limit=1)[0].passage.id == "pnew"
        search.close()
        record.close()
    finally:
        other.communicate("done\n", timeout=60)
    # Whoever holds the index next finds what was recorded meanwhile, and takes it in.
    record = Record(folder)
    index = index_of(record, embedder, told)
    assert index.open()
    number = INDEXED + 1
    assert index.nearest(embedder.embed(["A new passage."], kind="query")[0], 1, None)[0] == number
    assert index.fill() == 1
    near, _ = index.nearest(embedder.embed(["A new passage."], kind="query")[0], 1, None)
    assert (near.tolist(), index.fill()) == ([number], 0)
    index.close()
    record.close()


def test_a_lock_that_a_dead_process_left_is_no_obstacle(folder: Path) -> None:
    other = holder(folder)
    other.kill()
    other.communicate(timeout=60)
    lock = folder / "chroma" / "lock"
    assert json.loads(lock.read_text())["pid"] == other.pid
    with lock.open("rb") as file:
        # Its Chroma ends right after it, and this waits for that.
        fcntl.flock(file, fcntl.LOCK_EX)
    assert check_answers(folder, INDEXED) == []


def test_another_embedder_has_another_collection(folder: Path) -> None:
    old, new, told = Random(), Random("random-2"), list[str]()
    record = Record(folder)
    embed_all(table_of(record, new), new)
    second = index_of(record, new, told)
    assert second.open()
    assert second.fill() == INDEXED
    assert recall(second, table_of(record, new)) >= 0.98
    second.close()
    first = index_of(record, old, told)
    assert first.open()
    assert first.fill() == 0
    assert recall(first, table_of(record, old)) >= 0.98
    first.close()
    record.close()
    assert told == []
    assert first.folder != second.folder


def test_names_of_collections_never_meet() -> None:
    spaces = [
        Space("a/b", 3),
        Space("a-b", 3),
        Space("a b", 3),
        Space("a-b", 4),
        Space("日本語", 3),
        Space("", 3),
    ]
    names = {chroma.collection_name(space) for space in spaces}
    assert len(names) == len(spaces)
    assert all(len(name) > 2 and name[0].isalnum() and name.isascii() for name in names)


@pytest.mark.parametrize("listed", [20_000, 5], ids=["looked at one by one", "asked of chroma"])
@pytest.mark.parametrize(
    "filters",
    [
        Filters(sources=("corpus:7",)),
        Filters(date_from="2042", date_to="2042"),
        Filters(date_from="2010", date_to="2030-06"),
        Filters(not_sources=("corpus:7",)),
    ],
    ids=["a source, 1 %", "a year, 1 %", "years, 20 %", "not a source"],
)
def test_filters_lose_no_hits(
    folder: Path, filters: Filters, listed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chroma, "_LISTED", listed)
    embedder = Random()
    record = Record(folder)
    allowed = Places(record).allowed(filters)
    index = index_of(record, embedder, [])
    assert index.open()
    assert recall(index, table_of(record, embedder), allowed) >= 0.98
    near, _ = index.nearest(unit(0), 5, allowed)
    assert allowed[near].all()
    index.close()
    record.close()


def test_what_was_pruned_is_not_found_again(folder: Path) -> None:
    embedder, told = Random(), list[str]()
    record = Record(folder)
    index = index_of(record, embedder, told)
    assert index.open()
    gone = prune(record, source="corpus:7")
    assert gone.passages == INDEXED // 100
    table = table_of(record, embedder)
    assert recall(index, table) >= 0.98
    index.close()
    index = index_of(record, embedder, told)
    assert index.open()
    assert recall(index, table) >= 0.98
    index.close()
    record.close()
    assert told == []


def test_exact_search_takes_in_and_lets_go_of_vectors(tmp_path: Path) -> None:
    embedder = Random()
    record = filled_record(tmp_path, 200, embedder)
    matrix = Matrix(table_of(record, embedder))
    matrix.refresh()
    record.add_passages([passage("new", "A new passage.")])
    embed_all(table_of(record, embedder), embedder)
    matrix.refresh()
    query = embedder.embed(["A new passage."], kind="query")[0]
    assert matrix.nearest(query, 1)[0].tolist() == [201]
    prune(record, source="corpus:7")
    matrix.refresh()
    assert len(matrix) == 199
    assert 8 not in matrix.nearest(query, 500)[0]
    record.close()
