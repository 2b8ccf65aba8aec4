"""The completion cache's file: shared, private, and never a reason for a run to fail."""

import multiprocessing
import sqlite3
import stat
from pathlib import Path

import pytest

from offline_judge.judge.cache import CompletionCache


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "completions.sqlite"


@pytest.mark.parametrize("value", [{"text": "ol\u00e1 \U0001f600"}, [1, 0.5, None], "x", 0])
def test_a_value_outlives_its_process(path: Path, value: object) -> None:
    first = CompletionCache(path)
    first.put("k", value)
    first.close()
    second = CompletionCache(path)
    assert second.get("k") == value
    assert second.get("other") is None
    second.close()
    second.close()


def test_without_a_path_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    cache = CompletionCache(None)
    cache.put("k", 1)
    assert cache.get("k") == 1
    cache.close()
    assert list(tmp_path.iterdir()) == []


def test_only_the_owner_can_read_the_files(path: Path) -> None:
    cache = CompletionCache(path)
    cache.put("k", 1)
    modes = {stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    cache.close()
    assert modes == {0o600}


def _fill(path: Path, name: int) -> None:
    cache = CompletionCache(path)
    for number in range(25):
        cache.put(f"{name}/{number}", number)
    cache.close()


def test_several_processes_write_and_nothing_is_lost(path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_fill, args=(path, name)) for name in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert [worker.exitcode for worker in workers] == [0, 0]
    cache = CompletionCache(path)
    assert all(cache.get(f"{name}/{n}") == n for name in range(2) for n in range(25))
    cache.close()


@pytest.mark.parametrize(
    "junk", [b"not a database at all, but long enough" * 40, b"SQLite format 3\0"]
)
def test_a_damaged_file_is_set_aside_and_a_new_one_begun(path: Path, junk: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(junk)
    said: list[str] = []
    cache = CompletionCache(path, warn=said.append)
    cache.put("k", 1)
    cache.close()
    again = CompletionCache(path)
    assert again.get("k") == 1
    again.close()
    aside = path.with_name("completions.sqlite.damaged-1")
    assert aside.read_bytes() == junk
    assert len(said) == 1
    assert str(aside) in said[0]


def test_damage_found_in_use_is_no_error_either(path: Path) -> None:
    first = CompletionCache(path)
    for number in range(400):
        first.put(f"k{number}", "x" * 200)
    first.close()
    content = bytearray(path.read_bytes())
    content[4096 * 3 : -4096] = b"\xff" * (len(content) - 4096 * 4)
    path.write_bytes(content)
    said: list[str] = []
    cache = CompletionCache(path, warn=said.append)
    for number in range(400):
        cache.get(f"k{number}")
    cache.put("new", 1)
    assert cache.get("new") == 1
    cache.close()
    assert len(said) == 1
    assert path.with_name("completions.sqlite.damaged-1").exists()


def test_a_second_damaged_file_does_not_replace_the_first(path: Path) -> None:
    path.parent.mkdir()
    for number in (1, 2):
        path.write_bytes(b"junk number %d " % number * 99)
        CompletionCache(path, warn=lambda _: None).close()
    assert path.with_name("completions.sqlite.damaged-1").read_bytes().startswith(b"junk number 1")
    assert path.with_name("completions.sqlite.damaged-2").read_bytes().startswith(b"junk number 2")


def test_a_full_disk_is_said_once_and_the_run_goes_on(path: Path) -> None:
    said: list[str] = []
    cache = CompletionCache(path, warn=said.append)
    assert cache._database is not None
    cache._database.execute("PRAGMA max_page_count = 4")
    for number in range(20):
        cache.put(str(number), "x" * 3000)
    assert [cache.get(str(number)) for number in range(20)] == ["x" * 3000] * 20
    assert len(said) == 1
    assert "full" in said[0]
    cache.close()


def test_a_cache_that_another_process_holds_is_a_miss(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("offline_judge.judge.cache._BUSY_S", 0.01)
    said: list[str] = []
    cache = CompletionCache(path, warn=said.append)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    cache.put("k", 1)
    other.execute("ROLLBACK")
    other.close()
    assert cache.get("k") == 1
    assert len(said) == 1
    assert "locked" in said[0]
    cache.close()


def test_a_path_that_cannot_be_opened_leaves_the_cache_in_memory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    said: list[str] = []
    cache = CompletionCache(tmp_path / "file" / "completions.sqlite", warn=said.append)
    cache.put("k", 1)
    assert cache.get("k") == 1
    assert len(said) == 1
    cache.close()


def test_a_value_that_is_no_json_is_a_miss(path: Path) -> None:
    cache = CompletionCache(path)
    assert cache._database is not None
    with cache._database:
        cache._database.execute("INSERT INTO completions VALUES ('k', '{cut')")
    assert cache.get("k") is None
    cache.close()
