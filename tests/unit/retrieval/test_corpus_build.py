"""Building corpora: what is skipped, what an interrupted build leaves, who may build."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from offline_judge.errors import DataError, MissingError, StorageError, UsageError
from offline_judge.retrieval.corpus.build import Source, build_corpus
from offline_judge.retrieval.corpus.documents import Document
from offline_judge.retrieval.corpus.store import (
    build_lock,
    list_corpora,
    read_manifest,
    remove_corpus,
)
from offline_judge.retrieval.search.corpus import CorpusSearch

OLD = [Document("old", "Otters", "Otters hold hands while they sleep.")]
NEW = [Document("new", "Badgers", "Badgers dig setts.")]


def _titles(corpora: Path, query: str, name: str = "c") -> list[str]:
    hits = asyncio.run(CorpusSearch(name, corpora).search(query, limit=5))
    return [hit.passage.title for hit in hits]


def _indexes(corpora: Path) -> list[str]:
    return sorted(path.name for path in (corpora / "c").glob("index-*"))


def _unread() -> Iterator[Document]:
    raise AssertionError("documents were read although nothing has changed")
    yield


def test_the_manifest_counts_and_identifies_content(tmp_path: Path) -> None:
    text = "A sentence of some words that is said again. " * 40
    manifest = build_corpus("c", [*OLD, Document("d", "T", text)], tmp_path, source=Source("s1"))
    assert (manifest.name, manifest.documents, manifest.source) == ("c", 2, "s1")
    assert manifest.passages > 2
    assert read_manifest("c", tmp_path) == manifest


def test_the_content_hash_depends_on_content_only(tmp_path: Path) -> None:
    first = build_corpus("a", OLD + NEW, tmp_path / "x")
    again = build_corpus("b", iter(OLD + NEW), tmp_path / "y", source=Source("other"))
    assert first.content == again.content
    changed = [Document("old", "Otters", "Otters hold hands while they sleep!"), *NEW]
    assert build_corpus("b", changed, tmp_path / "y").content != first.content


def test_an_unchanged_source_is_not_built_again(tmp_path: Path) -> None:
    first = build_corpus("c", OLD, tmp_path, source=Source("s1"))
    assert build_corpus("c", _unread(), tmp_path, source=Source("s1")) == first


def test_a_changed_or_unknown_source_is_built(tmp_path: Path) -> None:
    build_corpus("c", OLD, tmp_path, source=Source("s1"))
    build_corpus("c", NEW, tmp_path, source=Source("s2"))
    assert _titles(tmp_path, "otters badgers") == ["Badgers"]
    build_corpus("c", OLD, tmp_path)
    assert _titles(tmp_path, "otters badgers") == ["Otters"]
    assert len(_indexes(tmp_path)) == 1


def test_a_damaged_corpus_is_built_again_though_its_source_is_unchanged(tmp_path: Path) -> None:
    manifest = build_corpus("c", OLD, tmp_path, source=Source("s1"))
    store = next((tmp_path / "c" / manifest.index).glob("*.store"))
    store.write_bytes(store.read_bytes()[:-3])
    build_corpus("c", OLD, tmp_path, source=Source("s1"))
    assert _titles(tmp_path, "otters") == ["Otters"]


def test_progress_ends_with_the_totals(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    documents = (Document(str(i), "T", f"text {i}") for i in range(1100))
    build_corpus("c", documents, tmp_path, lambda *counts: told.append(counts))
    assert told == [(500, 500), (1000, 1000), (1100, 1100)]


def test_a_failing_source_leaves_the_old_corpus_and_no_litter(tmp_path: Path) -> None:
    def documents() -> Iterator[Document]:
        yield from NEW
        raise DataError("row 2 is bad")

    build_corpus("c", OLD, tmp_path)
    before = _indexes(tmp_path)
    with pytest.raises(DataError, match="row 2"):
        build_corpus("c", documents(), tmp_path)
    assert _indexes(tmp_path) == before
    assert _titles(tmp_path, "otters badgers") == ["Otters"]


def test_a_first_build_that_fails_leaves_no_corpus(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="would be empty"):
        build_corpus("c", [], tmp_path)
    with pytest.raises(DataError, match="would be empty"):
        build_corpus("c", [Document("d", "T", " ")], tmp_path)
    assert list_corpora(tmp_path) == []
    assert not (tmp_path / "c").exists()


def test_two_documents_of_one_id_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="Two documents have the id `old`"):
        build_corpus("c", OLD + OLD, tmp_path)


def test_text_that_is_no_unicode_is_refused_with_its_document(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="`bad` holds half of a surrogate pair"):
        build_corpus("c", [*OLD, Document("bad", "T", "x \ud800")], tmp_path)


@pytest.mark.parametrize("name", ["", ".", "..", "../c", "a/b", ".hidden", "a b", "é", "x" * 65])
def test_a_name_that_could_leave_the_folder_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="cannot name a corpus"):
        build_corpus(name, OLD, tmp_path)
    with pytest.raises(UsageError, match="cannot name a corpus"):
        CorpusSearch(name, tmp_path)
    with pytest.raises(UsageError, match="cannot name a corpus"):
        remove_corpus(name, tmp_path)


def test_a_second_builder_is_refused_with_the_first_ones_process(tmp_path: Path) -> None:
    build_corpus("c", OLD, tmp_path)
    with build_lock("c", tmp_path):
        with pytest.raises(UsageError, match=f"Process {os.getpid()} is building"):
            build_corpus("c", NEW, tmp_path)
        with pytest.raises(UsageError, match="is building"):
            remove_corpus("c", tmp_path)
        build_corpus("other", NEW, tmp_path)
    assert _titles(tmp_path, "otters badgers") == ["Otters"]


def test_an_unchanged_corpus_needs_no_lock(tmp_path: Path) -> None:
    manifest = build_corpus("c", OLD, tmp_path, source=Source("s1"))
    with build_lock("c", tmp_path):
        assert build_corpus("c", _unread(), tmp_path, source=Source("s1")) == manifest


def _child(code: str, corpora: Path) -> subprocess.Popen[str]:
    script = (
        "import sys\nfrom pathlib import Path\ncorpora = Path(sys.argv[1])\n"
        + textwrap.dedent(
            """
        from offline_judge.errors import OfflineJudgeError
        from offline_judge.retrieval.corpus.build import Source, build_corpus
        from offline_judge.retrieval.corpus.documents import Document
        """
        )
    )
    command = [sys.executable, "-c", script + textwrap.dedent(code), str(corpora)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True)


def test_a_killed_build_leaves_the_old_corpus_and_the_next_one_tidies_up(tmp_path: Path) -> None:
    build_corpus("c", OLD, tmp_path)
    code = """
        def documents():
            for number in range(2_000):
                yield Document(str(number), "Badgers", "Badgers dig. " * 20)
            print("halfway", flush=True)
            sys.stdin.read()
        build_corpus("c", documents(), corpora)
    """
    with _child(code, tmp_path) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "halfway\n"
        assert len(_indexes(tmp_path)) == 2
        child.send_signal(signal.SIGKILL)
    assert _titles(tmp_path, "otters badgers") == ["Otters"]
    build_corpus("c", NEW, tmp_path)
    assert len(_indexes(tmp_path)) == 1
    assert _titles(tmp_path, "otters badgers") == ["Badgers"]


def test_a_full_disk_is_a_storage_error_and_leaves_the_old_corpus(tmp_path: Path) -> None:
    build_corpus("c", OLD, tmp_path)
    code = """
        import resource, signal
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
        documents = (Document(str(n), "T", f"words {n} {n * 7919}") for n in range(5000))
        try:
            build_corpus("c", documents, corpora)
        except OfflineJudgeError as error:
            print(type(error).__name__)
    """
    with _child(code, tmp_path) as child:
        assert child.stdout is not None
        assert child.stdout.read() == "StorageError\n"
    assert _titles(tmp_path, "otters") == ["Otters"]
    assert len(_indexes(tmp_path)) == 1


def test_a_place_that_cannot_be_written_is_a_storage_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError):
        build_corpus("c", OLD, tmp_path / "file")


def test_corpora_are_listed_and_removed(tmp_path: Path) -> None:
    assert list_corpora(tmp_path / "absent") == []
    build_corpus("b", OLD, tmp_path)
    build_corpus("a", OLD, tmp_path)
    assert list_corpora(tmp_path) == ["a", "b"]
    remove_corpus("a", tmp_path)
    assert list_corpora(tmp_path) == ["b"]
    with pytest.raises(MissingError):
        remove_corpus("a", tmp_path)
