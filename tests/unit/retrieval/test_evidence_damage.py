"""A damaged index: noticed, built anew from the record, and never a wrong neighbour."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from evidence_parts import (
    INDEXED,
    Random,
    check_answers,
    filled_record,
    index_of,
    recall,
    table_of,
)

from offline_judge.retrieval.evidence.record import Record


@pytest.fixture
def folder(built_evidence: Path, tmp_path: Path) -> Path:
    """An index that a test may damage."""
    return Path(shutil.copytree(built_evidence, tmp_path / "evidence"))


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


@pytest.mark.parametrize("name", TOLD_BY_FILES)
def test_damage_after_a_good_end_is_noticed_and_mended_from_the_record(
    folder: Path, name: str
) -> None:
    ALL[name](folder)
    told = check_answers(folder, INDEXED)
    assert len(told) == 1
    assert "damaged" in told[0]
    assert check_answers(folder, INDEXED) == []


@pytest.mark.parametrize("name", NOTICED)
def test_damage_after_a_kill_is_noticed_by_the_child_that_opens(folder: Path, name: str) -> None:
    pretend_killed(folder)
    NOTICED[name](folder)
    told = check_answers(folder, INDEXED)
    assert len(told) == 1
    assert "damaged" in told[0]


@pytest.mark.parametrize("name", QUIET)
def test_damage_that_only_adding_meets_gives_no_wrong_neighbour(folder: Path, name: str) -> None:
    pretend_killed(folder)
    QUIET[name](folder)
    embedder, told = Random(), list[str]()
    record = filled_record(folder, INDEXED, embedder, first=INDEXED)
    embedded = embedder.texts
    for _ in range(2):
        index = index_of(record, embedder, told)
        assert index.open()
        index.fill()
        assert recall(index, table_of(record, embedder)) >= 0.98
        index.close()
    record.close()
    assert embedded == embedder.texts == INDEXED


SEEN = ("all gone", "database gone", "database cut", "level data cut", "links gone", "state cut")


@pytest.mark.parametrize("name", SEEN)
def test_files_that_are_gone_or_cut_are_seen_without_opening(folder: Path, name: str) -> None:
    record = Record(folder)
    index = index_of(record, Random(), [])
    assert (index.fault(), index.waiting()) == ("", 0)
    NOTICED[name](folder)
    assert index.fault()
    assert (index.holds(), index.waiting()) == (0, INDEXED)
    record.close()


def test_a_database_gone_is_seen_after_a_kill_and_an_index_just_begun_is_whole(
    folder: Path,
) -> None:
    record = Record(folder)
    index = index_of(record, Random(), [])
    pretend_killed(folder)
    assert index.fault() == ""
    NOTICED["database gone"](folder)
    assert "chroma.sqlite3 is gone" in index.fault()
    path = next(folder.glob("chroma/*/state.json"))
    path.write_text(json.dumps(json.loads(path.read_text()) | {"last": 0}))
    assert index.fault() == ""
    record.close()


def test_an_undamaged_index_is_believed(folder: Path) -> None:
    before = data_of(folder)
    assert check_answers(folder, INDEXED) == []
    pretend_killed(folder)
    assert check_answers(folder, INDEXED) == []
    assert data_of(folder) == before
