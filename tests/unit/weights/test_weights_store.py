"""The store: files placed by hand, checks that are remembered, locks, and disks that say no."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from weights_helpers import (
    Hub,
    Recorder,
    gguf_bytes,
    hub_source,
    kept,
    make_card,
    make_store,
    packages_source,
    serving,
)

from offline_judge.errors import (
    DownloadError,
    GgufError,
    HashMismatchError,
    MissingModelError,
    StorageError,
)
from offline_judge.weights import checking, disk, partial
from offline_judge.weights.store import ModelStore

CONTENT = gguf_bytes()
CARD = make_card(CONTENT, hub_source())


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    for name in ("http_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    with serving(Hub(CONTENT)) as hub:
        yield hub


@pytest.fixture
def store(tmp_path: Path) -> ModelStore:
    return make_store(tmp_path)


def _place(store: ModelStore, content: bytes) -> Path:
    path = store.location(CARD)
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    return path


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Paths of the files that were hashed."""
    seen: list[Path] = []
    original = disk.file_sha256

    def counting(path: Path, tell: Any) -> str:
        seen.append(path)
        return original(path, tell)

    monkeypatch.setattr(checking, "file_sha256", counting)
    return seen


def test_missing_weights_name_the_command_that_fetches_them(store: ModelStore) -> None:
    with pytest.raises(MissingModelError, match="offline-judge models pull tiny") as caught:
        store.path(CARD)
    assert caught.value.exit_code == 3
    assert store.state(CARD) == "absent"


def test_placed_file_is_accepted_and_hashed_once(
    store: ModelStore, tmp_path: Path, hashed: list[Path]
) -> None:
    path = _place(store, CONTENT)
    assert store.path(CARD) == path
    assert make_store(tmp_path).path(CARD) == path
    assert hashed == [path]
    assert store.state(CARD) == "present"


def test_touched_file_is_hashed_again(store: ModelStore, hashed: list[Path]) -> None:
    path = _place(store, CONTENT)
    store.path(CARD)
    path.write_bytes(CONTENT[:-1] + b"?")
    os.utime(path, ns=(1, 1))
    with pytest.raises(HashMismatchError, match="its SHA-256 is"):
        store.path(CARD)
    assert len(hashed) == 2


def test_verify_does_not_believe_the_note(store: ModelStore) -> None:
    path = _place(store, CONTENT)
    store.path(CARD)
    status = path.stat()
    path.write_bytes(CONTENT[:-1] + b"?")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    report = store.verify(CARD)
    assert not report.ok
    assert "SHA-256" in report.files[0].problem


def test_verify_reports_whole_and_missing_files(store: ModelStore) -> None:
    assert store.verify(CARD).files[0].problem == "it is not there"
    _place(store, CONTENT)
    recorder = Recorder()
    assert store.verify(CARD, recorder).ok
    assert recorder.seen[-1].done == len(CONTENT)


@pytest.mark.parametrize(
    ("content", "reason"),
    [(CONTENT[:-1], "cut short"), (b"no model at all", "no GGUF file"), (b"", "no GGUF file")],
)
def test_placed_file_that_is_no_whole_gguf_is_refused(
    store: ModelStore, content: bytes, reason: str
) -> None:
    _place(store, content)
    with pytest.raises(GgufError, match=reason):
        store.path(CARD)
    assert not store.verify(CARD).ok


def test_placed_file_of_another_model_is_refused(store: ModelStore) -> None:
    _place(store, gguf_bytes(elements=30_000))
    with pytest.raises(HashMismatchError, match=rf"not {len(CONTENT)}"):
        store.path(CARD)


def test_pull_leaves_a_right_file_alone(store: ModelStore) -> None:
    path = _place(store, CONTENT)
    before = path.stat().st_ino
    recorder = Recorder()
    assert store.pull(CARD, recorder) == path
    assert path.stat().st_ino == before
    assert recorder.seen[-1].phase == "done"


def test_pull_replaces_a_wrong_file_in_place(hub: Hub, tmp_path: Path) -> None:
    store = make_store(tmp_path, hub.environ())
    path = _place(store, b"wrong")
    recorder = Recorder()
    assert store.pull(CARD, recorder).read_bytes() == CONTENT
    assert path.read_bytes() == CONTENT
    assert "will be replaced" in recorder.seen[0].note


def test_pulled_file_is_not_hashed_again_at_start(
    hub: Hub, tmp_path: Path, hashed: list[Path]
) -> None:
    store = make_store(tmp_path, hub.environ())
    store.pull(CARD)
    hashed.clear()
    store.path(CARD)
    assert hashed == []


def test_right_hash_of_a_file_that_is_no_gguf_is_refused(hub: Hub, tmp_path: Path) -> None:
    hub.content = b"promised, but no model"
    store = make_store(tmp_path, hub.environ())
    with pytest.raises(GgufError, match="no GGUF file"):
        store.pull(make_card(hub.content, hub_source()))
    assert kept(tmp_path) == []


def test_all_sources_are_listed_with_their_reasons(hub: Hub, tmp_path: Path) -> None:
    hub.statuses = [404]
    card = make_card(CONTENT, hub_source(), packages_source("tiny-part1"))
    store = make_store(tmp_path, hub.environ(), python="/no/python")
    with pytest.raises(DownloadError) as caught:
        store.pull(card)
    assert "huggingface owner/model: it answers HTTP 404" in str(caught.value)
    assert "packages tiny-part1 1.0: cannot start /no/python" in str(caught.value)
    assert str(store.location(card)) in caught.value.remedy


def test_card_without_sources_says_so(store: ModelStore) -> None:
    with pytest.raises(DownloadError, match="names no source"):
        store.pull(make_card(CONTENT))


def test_second_pull_of_the_same_file_is_refused_while_one_runs(hub: Hub, tmp_path: Path) -> None:
    hub.hold.clear()
    first = make_store(tmp_path, hub.environ())
    paths: list[Path] = []
    thread = threading.Thread(target=lambda: paths.append(first.pull(CARD)))
    thread.start()
    try:
        assert hub.asked.wait(10)
        with pytest.raises(DownloadError, match=rf"by process {os.getpid()}\."):
            make_store(tmp_path, hub.environ()).pull(CARD)
    finally:
        hub.hold.set()
        thread.join()
    assert paths[0].read_bytes() == CONTENT
    assert len(hub.requests) == 1


def test_lock_of_another_process_names_it_and_dies_with_it(hub: Hub, tmp_path: Path) -> None:
    lock = tmp_path / "cache" / "downloads" / f"{CARD.files[0].sha256}.lock"
    code = (
        "import sys; from pathlib import Path; from offline_judge.weights.partial import PullLock\n"
        "with PullLock(Path(sys.argv[1]), 'x'):\n    print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(lock)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(disk.__file__).parents[2],
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"held\n"
        store = make_store(tmp_path, hub.environ())
        with pytest.raises(DownloadError, match=rf"by process {child.pid}\."):
            store.pull(CARD)
        child.kill()
        child.wait()
    assert store.pull(CARD).read_bytes() == CONTENT


def test_too_little_space_is_refused_before_anything_is_asked(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(tmp_path)._replace(free=1_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    with pytest.raises(StorageError, match=r"80,\d+ bytes needed, 1,000 bytes free"):
        make_store(tmp_path, hub.environ()).pull(CARD)
    assert hub.requests == []


def test_full_disk_keeps_what_was_fetched_and_the_next_pull_goes_on(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append = partial.PartialFile._append
    hub.cuts = [30_000]

    def full(self: partial.PartialFile, block: bytes) -> int:
        if self.size >= 30_000:
            with disk.storing(self.path, 50_000):
                raise OSError(errno.ENOSPC, "No space left on device")
        return append(self, block)

    store = make_store(tmp_path, hub.environ())
    with monkeypatch.context() as patch:
        patch.setattr(partial.PartialFile, "_append", full)
        with pytest.raises(StorageError, match=r"disk is full\. 50,000 bytes more") as caught:
            store.pull(CARD)
    assert "OFFLINE_JUDGE_CACHE_DIR" in caught.value.remedy
    assert store.pull(CARD).read_bytes() == CONTENT
    assert hub.requests[-1]["Range"] == "bytes=30000-"


def test_models_folder_that_cannot_be_made_is_named(hub: Hub, tmp_path: Path) -> None:
    (tmp_path / "models").write_text("a file where the folder should be")
    with pytest.raises(StorageError, match="models"):
        make_store(tmp_path, hub.environ()).pull(CARD)


def test_cache_folder_that_cannot_be_made_is_named(hub: Hub, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where the folder should be")
    with pytest.raises(StorageError, match="cache"):
        make_store(tmp_path, hub.environ()).pull(CARD)


def test_read_only_models_folder_keeps_the_download_for_the_next_pull(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Not by permission bits: they do not bind root, who runs the tests in many containers.
    def refuse(self: Path, target: Path) -> Path:
        raise OSError(errno.EROFS, "Read-only file system")

    store = make_store(tmp_path, hub.environ())
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", refuse)
        patch.setattr(partial.PartialFile, "remember", lambda self, state: None)
        with pytest.raises(StorageError, match="Read-only file system"):
            store.pull(CARD)
    assert store.pull(CARD).read_bytes() == CONTENT
    assert len(hub.requests) == 1


def test_placed_file_is_used_where_nothing_can_be_noted(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where the folder should be")
    store = make_store(tmp_path)
    path = _place(store, CONTENT)
    assert store.path(CARD) == path


def test_cache_on_another_file_system_still_ends_in_a_whole_file(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = Path.replace

    def replace(self: Path, target: Path) -> Path:
        if self.suffix == ".partial":
            raise OSError(errno.EXDEV, "Invalid cross-device link")
        return original(self, target)

    monkeypatch.setattr(Path, "replace", replace)
    assert make_store(tmp_path, hub.environ()).pull(CARD).read_bytes() == CONTENT
    assert kept(tmp_path) == ["tiny.gguf"]
