"""The folder of runs: ids, making, finding, removing, and files replaced whole."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from runs_helpers import finished, manifest, new_run, record, started, whole_run

from offline_judge.errors import RunLockedError, RunNotFoundError, StorageError, UsageError
from offline_judge.runs import atomic as atomic_module
from offline_judge.runs import store as store_module
from offline_judge.runs.atomic import write_atomic
from offline_judge.runs.ids import new_run_id
from offline_judge.runs.store import RunStore


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    return RunStore(tmp_path / "data" / "runs")


def test_ids_sort_by_time_to_the_millisecond() -> None:
    start = datetime(2026, 11, 30, 21, 15, 7, tzinfo=UTC)
    times = [start + timedelta(milliseconds=n) for n in (0, 1, 2, 500, 998, 999, 1000)]
    ids = [new_run_id(time) for time in times]
    assert ids == sorted(ids)
    assert ids[0].startswith("20261130-211507-0")
    assert len(ids[0]) == len("20261130-211507-k3fz")


def test_ids_of_one_second_differ(store: RunStore, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = iter(["same", "same", "other"])
    monkeypatch.setattr(store_module, "new_run_id", lambda: next(drawn))
    names = []
    for _ in range(2):
        names.append(store.new_id())
        store.create(manifest(names[-1]))
    assert names == ["same", "other"]


def test_a_run_comes_back_as_it_was_made(store: RunStore) -> None:
    # A path with a byte that is no UTF-8.
    made = manifest()
    made = made.model_copy(update={"data": made.data.model_copy(update={"path": "/x\udcff"})})
    run = store.create(made, files={"asked.jsonl": b"{}\n"})
    assert store.open(run.run_id).manifest() == made
    assert run.file("asked.jsonl").read_bytes() == b"{}\n"
    assert store.ids() == [run.run_id]


def test_the_manifest_is_written_last(store: RunStore, monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    monkeypatch.setattr(store_module, "write_atomic", lambda path, data: order.append(path.name))
    store.create(manifest(), files={"b": b"", "a": b""})
    assert order == ["b", "a", "run.json"]


def test_a_run_is_made_once(store: RunStore) -> None:
    run = store.create(manifest())
    record(run, started())
    with pytest.raises(UsageError, match="exists"):
        store.create(manifest())
    assert len(list(run.events())) == 1


def test_a_run_that_could_not_be_made_leaves_nothing(
    store: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    store.create(manifest("earlier"))
    monkeypatch.setattr(atomic_module, "sync", full)
    monkeypatch.setattr(store_module, "sync_directory", lambda path: None)
    with pytest.raises(StorageError, match="full"):
        store.create(manifest())
    assert store.ids() == ["earlier"]
    assert not (store.open("earlier").path.parent / manifest().run_id).exists()


@pytest.mark.parametrize("name", ["../x", "a/b", "", ".hidden", "last", "x" * 200, "a\n"])
def test_an_id_that_is_no_plain_name_is_refused(store: RunStore, name: str) -> None:
    with pytest.raises(UsageError):
        store.create(manifest(name))


@pytest.mark.parametrize(
    "name", ["../x", "run.json", "lock", "events-main.jsonl", "blobs.sqlite-wal", "results.json"]
)
def test_a_file_of_the_callers_cannot_stand_in_for_a_runs_own(store: RunStore, name: str) -> None:
    with pytest.raises(ValueError, match="cannot keep"):
        store.create(manifest(), files={name: b""})
    assert store.ids() == []


@pytest.fixture
def three(store: RunStore) -> RunStore:
    for name in ("20260101-000000-aaaa", "20260101-000000-bbbb", "20260202-000000-cccc"):
        store.create(manifest(name))
    (store.open("last").path.parent / "20260303-000000-half").mkdir()
    return store


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("20260101-000000-aaaa", "20260101-000000-aaaa"),
        ("202602", "20260202-000000-cccc"),
        ("20260101-000000-b", "20260101-000000-bbbb"),
        ("last", "20260202-000000-cccc"),
    ],
)
def test_a_run_is_found_by_id_prefix_or_last(three: RunStore, wanted: str, found: str) -> None:
    assert three.open(wanted).run_id == found


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ("20260101", "Several.*aaaa.*bbbb"),
        ("20260101-000000-aaab", "Did you mean `20260101-000000-aaaa`"),
        ("zzz", "runs list"),
        ("", "runs list"),
        ("../runs/20260202-000000-cccc", "No run"),
        ("20260303-000000-half", r"never begun.*run\.json"),
    ],
)
def test_a_run_that_is_not_found_is_explained(three: RunStore, wanted: str, said: str) -> None:
    with pytest.raises(RunNotFoundError, match=said):
        three.open(wanted)


def test_an_empty_store_says_so(store: RunStore) -> None:
    assert store.ids() == []
    for wanted in ("last", "x"):
        with pytest.raises(RunNotFoundError, match="no runs yet"):
            store.open(wanted)


def test_many_matches_are_not_all_listed(store: RunStore) -> None:
    for number in range(10, 30):
        store.create(manifest(f"run-{number}"))
    with pytest.raises(RunNotFoundError, match="run-29 and 15 more"):
        store.open("run")


def test_a_run_in_use_is_not_removed(store: RunStore) -> None:
    run = store.create(manifest())
    with run.writer() as writer:
        with pytest.raises(RunLockedError):
            store.remove(run.run_id)
        writer.emit(started())
    assert len(list(run.events())) == 1
    store.remove(run.run_id)
    assert list(run.path.parent.iterdir()) == []


def test_only_a_whole_id_is_removed(three: RunStore) -> None:
    for wanted in ("last", "202602", "..", "."):
        with pytest.raises(RunNotFoundError):
            three.remove(wanted)
    assert len(three.ids()) == 3
    three.remove("20260303-000000-half")
    assert len(list(three.open("last").path.parent.iterdir())) == 3


def test_results_are_replaced_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = new_run(tmp_path)
    assert run.results() is None
    record(run, *whole_run())
    summary = run.state().summary()
    run.write_results(summary)
    assert run.results() == summary

    def torn(descriptor: int) -> None:
        raise OSError(5, "I/O error")

    monkeypatch.setattr(atomic_module, "sync", torn)
    with pytest.raises(StorageError):
        run.write_results(summary.model_copy(update={"planned": 99}))
    assert run.results() == summary
    assert not list(run.path.glob(".results*"))


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"run_id": 1}', b"\xff"])
def test_a_damaged_manifest_is_named(store: RunStore, content: bytes) -> None:
    run = store.create(manifest())
    run.file("run.json").write_bytes(content)
    with pytest.raises(StorageError, match=r"run\.json"):
        run.manifest()


def test_a_run_is_running_while_its_lock_is_held_and_then_interrupted(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    with run.writer() as writer:
        writer.emit(whole_run()[0])
        assert run.state().status == "running"
    assert run.state().status == "interrupted"
    record(run, started(), finished(), whole_run()[-1])
    assert run.state().status == "completed"


def test_templates_are_kept_beside_an_open_writer(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    with run.writer() as writer:
        names = {writer.put_blob("source"), run.put_blob("source"), run.put_blob("source")}
    assert [run.blob(name) for name in names] == ["source"]
    with pytest.raises(StorageError, match="No text"):
        run.blob("0" * 64)


def test_an_atomic_write_replaces_and_leaves_no_part(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for content in (b"old", b"new"):
        write_atomic(path, content)
        assert path.read_bytes() == content
    assert list(tmp_path.iterdir()) == [path]
    assert path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(StorageError, match="nowhere"):
        write_atomic(tmp_path / "nowhere" / "file", b"")
