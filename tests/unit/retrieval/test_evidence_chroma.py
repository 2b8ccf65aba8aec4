"""Chroma as a cache: damage of every kind, its lock, its filters, and what it holds of whom."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from evidence_parts import (
    DIMENSION,
    Random,
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
COUNT = 1500  # Chroma writes its index to files from a thousand vectors on


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An evidence folder with vectors and an index that was closed in good order."""
    folder = tmp_path_factory.mktemp("built") / "evidence"
    embedder = Random()
    record = filled_record(folder, COUNT, embedder)
    index = index_of(record, embedder, [])
    assert index.open()
    assert index.fill() == COUNT
    index.close()
    record.close()
    return folder


@pytest.fixture
def folder(built: Path, tmp_path: Path) -> Path:
    """A copy of it for one test."""
    return Path(shutil.copytree(built, tmp_path / "evidence"))


def data_of(folder: Path) -> Path:
    return next(folder.glob("chroma/*/data-*"))


def segment_of(folder: Path) -> Path:
    return next(path for path in data_of(folder).iterdir() if path.is_dir())


def cut(path: Path, share: float = 0.5) -> None:
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * share)])


def overwrite(path: Path, first: float, last: float, *, zeros: bool = False) -> None:
    whole = bytearray(path.read_bytes())
    start, stop = int(len(whole) * first), int(len(whole) * last)
    noise = bytes(stop - start) if zeros else np.random.default_rng(1).bytes(stop - start)
    whole[start:stop] = noise
    path.write_bytes(whole)


def pretend_killed(folder: Path) -> None:
    """As a process leaves it that was killed: nobody said how the files ought to be."""
    path = next(folder.glob("chroma/*/state.json"))
    path.write_text(json.dumps(json.loads(path.read_text()) | {"clean": False, "files": {}}))


Damage = Callable[[Path], object]
NOTICED: dict[str, Damage] = {
    "header zeroed": lambda f: overwrite(segment_of(f) / "header.bin", 0, 1, zeros=True),
    "level data cut": lambda f: cut(segment_of(f) / "data_level0.bin"),
    "level data random": lambda f: overwrite(segment_of(f) / "data_level0.bin", 0.4, 0.6),
    "level data zeroed": lambda f: overwrite(
        segment_of(f) / "data_level0.bin", 0.3, 0.6, zeros=True
    ),
    "links gone": lambda f: (segment_of(f) / "link_lists.bin").unlink(),
    "metadata gone": lambda f: (segment_of(f) / "index_metadata.pickle").unlink(),
    "segment folder gone": lambda f: shutil.rmtree(segment_of(f)),
    "database head": lambda f: overwrite(data_of(f) / "chroma.sqlite3", 0, 0.01, zeros=True),
    "database middle": lambda f: overwrite(data_of(f) / "chroma.sqlite3", 0.3, 0.6),
    "database cut": lambda f: cut(data_of(f) / "chroma.sqlite3"),
    "database gone": lambda f: (data_of(f) / "chroma.sqlite3").unlink(),
    "all gone": lambda f: shutil.rmtree(data_of(f)),
    "state gone": lambda f: next(f.glob("chroma/*/state.json")).unlink(),
    "state cut": lambda f: cut(next(f.glob("chroma/*/state.json"))),
}
# What Chroma does not read while it only answers: told from the files where they are known.
QUIET: dict[str, Damage] = {
    "header cut": lambda f: cut(segment_of(f) / "header.bin"),
    "lengths cut": lambda f: cut(segment_of(f) / "length.bin"),
    "lengths empty": lambda f: cut(segment_of(f) / "length.bin", 0),
}
ALL = NOTICED | QUIET
TOLD_BY_FILES = (
    "header cut",
    "level data cut",
    "lengths cut",
    "segment folder gone",
    "database gone",
)


def answers_well(folder: Path) -> list[str]:
    """Open, fill, compare with exact search; nothing is embedded; gives what was told."""
    embedder, told = Random(), list[str]()
    record = Record(folder)
    table = table_of(record, embedder)
    index = index_of(record, embedder, told)
    assert index.open()
    index.fill()
    assert recall(index, table) >= 0.98
    held = index.holds()
    index.close()
    assert (embedder.texts, table.count(), table.count_until(held)) == (0, COUNT, COUNT)
    assert record.stats().passages == COUNT
    record.close()
    return told


@pytest.mark.parametrize("name", TOLD_BY_FILES)
def test_damage_after_a_good_end_is_noticed_and_mended_from_the_record(
    folder: Path, name: str
) -> None:
    ALL[name](folder)
    told = answers_well(folder)
    assert len(told) == 1
    assert "damaged" in told[0]
    assert answers_well(folder) == []


@pytest.mark.parametrize("name", NOTICED)
def test_damage_after_a_kill_is_noticed_by_the_child_that_opens(folder: Path, name: str) -> None:
    pretend_killed(folder)
    NOTICED[name](folder)
    told = answers_well(folder)
    assert len(told) == 1
    assert "damaged" in told[0]


@pytest.mark.parametrize("name", QUIET)
def test_damage_that_only_adding_meets_gives_no_wrong_neighbour(folder: Path, name: str) -> None:
    pretend_killed(folder)
    QUIET[name](folder)
    embedder, told = Random(), list[str]()
    record = filled_record(folder, COUNT, embedder, first=COUNT)
    embedded = embedder.texts
    for _ in range(2):
        index = index_of(record, embedder, told)
        assert index.open()
        index.fill()
        assert recall(index, table_of(record, embedder)) >= 0.98
        index.close()
    record.close()
    assert embedded == embedder.texts == COUNT


def test_an_undamaged_index_is_believed(folder: Path) -> None:
    before = data_of(folder)
    assert answers_well(folder) == []
    pretend_killed(folder)
    assert answers_well(folder) == []
    assert data_of(folder) == before


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
    assert answers_well(folder) == []


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
    number = COUNT + 1
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
    assert answers_well(folder) == []


def test_another_embedder_has_another_collection(folder: Path) -> None:
    old, new, told = Random(), Random("random-2"), list[str]()
    record = Record(folder)
    embed_all(table_of(record, new), new)
    second = index_of(record, new, told)
    assert second.open()
    assert second.fill() == COUNT
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
    assert gone.passages == COUNT // 100
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
