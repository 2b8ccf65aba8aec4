"""Vectors of a corpus: nothing embedded twice, nothing mixed, nothing lost, damage noticed."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from numpy.typing import NDArray

from offline_judge.errors import BackendError, MissingError, SearchError, StorageError, UsageError
from offline_judge.retrieval.corpus.build import build_corpus
from offline_judge.retrieval.corpus.documents import Document
from offline_judge.retrieval.corpus.embedding import BATCH, STORE, embed_corpus
from offline_judge.retrieval.corpus.store import build_lock, read_manifest
from offline_judge.retrieval.corpus.vector_store import embedded_counts
from offline_judge.retrieval.corpus.vectors import (
    VECTORS,
    open_vectors,
    read_vector_manifest,
)
from offline_judge.retrieval.embedding.hashing import HashingEmbedder

Kind = Literal["query", "passage"]


class Counting(HashingEmbedder):
    """Remembers what it embedded; `before` is called with all of it before each batch."""

    def __init__(
        self,
        dimension: int = 64,
        id: str = "counting-1",
        before: Callable[[list[str]], None] = lambda _texts: None,
    ) -> None:
        super().__init__(dimension)
        self.texts: list[str] = []
        self._id = id
        self._before = before

    @property
    def id(self) -> str:
        return self._id

    def embed(self, texts: Sequence[str], *, kind: Kind) -> NDArray[np.float32]:
        assert kind == "passage"
        self._before(self.texts)
        self.texts.extend(texts)
        return super().embed(texts, kind=kind)


def _documents(count: int = 100, word: str = "lives") -> list[Document]:
    return [Document(f"d{n:03}", f"Title {n}", f"number{n} {word} here.") for n in range(count)]


def _rows(corpora: Path, embedder: str = "counting-1") -> NDArray[np.float32]:
    vectors = open_vectors(corpora / "c", read_manifest("c", corpora), embedder)
    assert len(vectors.places) == len(vectors.matrix)
    assert (np.diff(vectors.places.astype(np.int64)) > 0).all()
    return np.array(vectors.matrix)


def _complete(corpora: Path) -> bool:
    return read_vector_manifest(corpora / "c", read_manifest("c", corpora)) is not None


def test_each_passage_gets_the_vector_of_its_title_and_text(tmp_path: Path) -> None:
    build_corpus("c", [*_documents(3), Document("x", "", "untitled")], tmp_path)
    told: list[tuple[int, int]] = []
    embed_corpus("c", tmp_path, Counting(), lambda *counts: told.append(counts))
    texts = [f"Title {n}. number{n} lives here." for n in range(3)] + ["untitled"]
    assert np.array_equal(_rows(tmp_path), HashingEmbedder(64).embed(texts, kind="passage"))
    assert told == [(0, 4), (4, 4)]


def test_complete_vectors_are_left_as_they_are(tmp_path: Path) -> None:
    build_corpus("c", _documents(), tmp_path)
    first = embed_corpus("c", tmp_path, Counting())
    again = Counting()
    assert embed_corpus("c", tmp_path, again) == first
    assert again.texts == []


def test_only_changed_passages_are_embedded_anew(tmp_path: Path) -> None:
    documents = _documents()
    build_corpus("c", documents, tmp_path)
    embed_corpus("c", tmp_path, Counting())
    documents[5] = Document("d005", "Title 5", "It changed.")
    documents[6] = Document("other-id", documents[6].title, documents[6].text)
    build_corpus("c", documents[:-1], tmp_path)
    assert not _complete(tmp_path)
    embedder = Counting()
    embed_corpus("c", tmp_path, embedder)
    assert embedder.texts == ["Title 5. It changed."]
    assert len(_rows(tmp_path)) == 99
    # What is gone from the corpus is gone from the store.
    assert embedded_counts(tmp_path / "c" / STORE) == {"counting-1": 99}


def test_equal_passages_are_embedded_once(tmp_path: Path) -> None:
    build_corpus("c", [Document(f"d{n}", "Ants", "Ants dig.") for n in range(10_000)], tmp_path)
    embedder = Counting()
    embed_corpus("c", tmp_path, embedder)
    assert embedder.texts == ["Ants. Ants dig."]
    assert _rows(tmp_path).shape == (10_000, 64)


def test_another_embedder_embeds_all_anew_and_is_never_mixed(tmp_path: Path) -> None:
    build_corpus("c", _documents(), tmp_path)
    embed_corpus("c", tmp_path, Counting())
    other = Counting(dimension=32, id="other-1")
    embed_corpus("c", tmp_path, other)
    assert len(other.texts) == 100
    assert _rows(tmp_path, "other-1").shape == (100, 32)
    with pytest.raises(SearchError, match="made by other-1, not counting-1"):
        _rows(tmp_path)
    # Going back costs nothing.
    back = Counting()
    embed_corpus("c", tmp_path, back)
    assert back.texts == []
    assert _rows(tmp_path).shape == (100, 64)


def test_vectors_of_another_length_under_the_same_name_are_made_anew(tmp_path: Path) -> None:
    documents = _documents()
    build_corpus("c", documents, tmp_path)
    embed_corpus("c", tmp_path, Counting(dimension=32))
    build_corpus("c", documents[1:], tmp_path)
    embedder = Counting(dimension=64)
    embed_corpus("c", tmp_path, embedder)
    assert len(embedder.texts) == 99
    assert _rows(tmp_path).shape == (99, 64)


def test_an_interrupted_call_is_gone_on_with(tmp_path: Path) -> None:
    def interrupt(texts: list[str]) -> None:
        if len(texts) >= 3 * BATCH:
            raise KeyboardInterrupt

    build_corpus("c", _documents(), tmp_path)
    first = Counting(before=interrupt)
    with pytest.raises(KeyboardInterrupt):
        embed_corpus("c", tmp_path, first)
    assert not _complete(tmp_path)
    assert embedded_counts(tmp_path / "c" / STORE) == {"counting-1": 3 * BATCH}
    second, told = Counting(), []
    embed_corpus("c", tmp_path, second, lambda *counts: told.append(counts))
    assert told[0] == (3 * BATCH, 100)
    assert sorted(first.texts + second.texts) == sorted(
        f"{document.title}. {document.text}" for document in _documents()
    )


def test_a_failing_embedder_keeps_what_is_embedded(tmp_path: Path) -> None:
    def fail(texts: list[str]) -> None:
        if texts:
            raise BackendError("it broke")

    build_corpus("c", _documents(), tmp_path)
    with pytest.raises(BackendError, match="it broke"):
        embed_corpus("c", tmp_path, Counting(before=fail))
    assert embedded_counts(tmp_path / "c" / STORE) == {"counting-1": BATCH}


@pytest.mark.parametrize("bad", ["short", "nan"])
def test_numbers_that_are_no_vectors_are_refused(tmp_path: Path, bad: str) -> None:
    class Bad(Counting):
        def embed(self, texts: Sequence[str], *, kind: Kind) -> NDArray[np.float32]:
            rows = super().embed(texts, kind=kind)
            if bad == "short":
                return rows[:, :-1]
            rows[0, 0] = np.nan
            return rows

    build_corpus("c", _documents(), tmp_path)
    with pytest.raises(BackendError):
        embed_corpus("c", tmp_path, Bad())
    assert embedded_counts(tmp_path / "c" / STORE) == {}


def _child(code: str, corpora: Path) -> subprocess.Popen[str]:
    script = """
        import sys
        from pathlib import Path
        from offline_judge.errors import OfflineJudgeError
        from offline_judge.retrieval.corpus.embedding import embed_corpus
        from offline_judge.retrieval.embedding.hashing import HashingEmbedder

        corpora = Path(sys.argv[1])
    """
    command = [sys.executable, "-c", textwrap.dedent(script) + textwrap.dedent(code), str(corpora)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True)


def test_a_killed_call_embeds_at_most_one_batch_twice(tmp_path: Path) -> None:
    build_corpus("c", _documents(), tmp_path)
    code = f"""
        class Stopping(HashingEmbedder):
            id = "counting-1"
            calls = 0
            def embed(self, texts, *, kind):
                self.calls += 1
                if self.calls == 4:
                    print("three are done", flush=True)
                    sys.stdin.read()
                return super().embed(texts, kind=kind)
        assert {BATCH} * 4 < 100
        embed_corpus("c", corpora, Stopping(64))
    """
    with _child(code, tmp_path) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "three are done\n"
        with pytest.raises(UsageError, match=f"Process {child.pid} is building"):
            embed_corpus("c", tmp_path, Counting())
        child.send_signal(signal.SIGKILL)
    embedder = Counting()
    embed_corpus("c", tmp_path, embedder)
    assert len(embedder.texts) == 100 - 3 * BATCH
    assert len(_rows(tmp_path)) == 100


def test_a_full_disk_keeps_the_old_corpus_and_all_finished_vectors(tmp_path: Path) -> None:
    build_corpus("c", _documents(5), tmp_path)
    embed_corpus("c", tmp_path, Counting(dimension=256))
    documents = _documents(3000)
    build_corpus("c", documents, tmp_path)
    code = """
        import resource, signal
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))
        class Named(HashingEmbedder):
            id = "counting-1"
        try:
            embed_corpus("c", corpora, Named(256))
        except OfflineJudgeError as error:
            print(type(error).__name__, error.remedy)
    """
    with _child(code, tmp_path) as child:
        assert child.stdout is not None
        said = child.stdout.read()
    assert said.startswith("StorageError Make room and call again")
    kept = embedded_counts(tmp_path / "c" / STORE)["counting-1"]
    assert 5 < kept < 3000
    embedder = Counting(dimension=256)
    embed_corpus("c", tmp_path, embedder)
    assert len(embedder.texts) == 3000 - kept
    assert len(np.unique(_rows(tmp_path), axis=0)) == 3000


def test_a_place_for_the_matrix_that_cannot_be_written_is_a_storage_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(**_: object) -> str:
        raise OSError(28, "No space left on device")

    build_corpus("c", _documents(), tmp_path)
    monkeypatch.setattr("offline_judge.retrieval.corpus.embedding.tempfile.mkdtemp", full)
    with pytest.raises(StorageError, match="No space left"):
        embed_corpus("c", tmp_path, Counting())
    monkeypatch.undo()
    embedder = Counting()
    embed_corpus("c", tmp_path, embedder)
    assert embedder.texts == []


@pytest.mark.parametrize("damage", ["cut", "changed", "gone"])
@pytest.mark.parametrize("name", ["matrix.npy", "places.npy"])
def test_damaged_vectors_are_noticed_and_made_of_what_was_embedded(
    tmp_path: Path, damage: str, name: str
) -> None:
    build_corpus("c", _documents(), tmp_path)
    manifest = embed_corpus("c", tmp_path, Counting())
    before = _rows(tmp_path)
    path = tmp_path / "c" / manifest.folder / name
    whole = path.read_bytes()
    if damage == "gone":
        path.unlink()
    else:
        path.write_bytes(whole[:-4] + (b"" if damage == "cut" else b"\0\0\0\1"))
    with pytest.raises(SearchError, match="corpus embed c"):
        _rows(tmp_path)
    embedder = Counting()
    embed_corpus("c", tmp_path, embedder)
    assert embedder.texts == []
    assert np.array_equal(_rows(tmp_path), before)


@pytest.mark.parametrize("content", [b"", b"no database at all, but long enough" * 100])
def test_a_damaged_store_is_begun_anew(tmp_path: Path, content: bytes) -> None:
    documents = _documents()
    build_corpus("c", documents, tmp_path)
    embed_corpus("c", tmp_path, Counting())
    build_corpus("c", documents[1:], tmp_path)
    (tmp_path / "c" / STORE).write_bytes(content)
    embedder = Counting()
    embed_corpus("c", tmp_path, embedder)
    assert len(embedder.texts) == 99
    assert len(_rows(tmp_path)) == 99


def test_a_store_damaged_inside_is_begun_anew(tmp_path: Path) -> None:
    documents = _documents()
    build_corpus("c", documents, tmp_path)
    embed_corpus("c", tmp_path, Counting())
    build_corpus("c", documents[1:], tmp_path)
    path = tmp_path / "c" / STORE
    raw = bytearray(path.read_bytes())
    raw[4096 * 3 : 4096 * 6] = b"\xff" * (4096 * 3)
    path.write_bytes(raw)
    embed_corpus("c", tmp_path, Counting())
    texts = [f"{document.title}. {document.text}" for document in documents[1:]]
    assert np.array_equal(_rows(tmp_path), HashingEmbedder(64).embed(texts, kind="passage"))


def test_vectors_of_an_index_that_was_replaced_are_swept(tmp_path: Path) -> None:
    build_corpus("c", _documents(), tmp_path)
    embed_corpus("c", tmp_path, Counting())
    build_corpus("c", _documents(word="lived"), tmp_path)
    with pytest.raises(SearchError, match="not complete"):
        _rows(tmp_path)
    assert list((tmp_path / "c").glob("vectors-*")) == []


@pytest.mark.parametrize("content", [b"{", b"{}", b"\xff"])
def test_an_unreadable_manifest_of_vectors_means_that_there_are_none(
    tmp_path: Path, content: bytes
) -> None:
    build_corpus("c", _documents(), tmp_path)
    embed_corpus("c", tmp_path, Counting())
    (tmp_path / "c" / VECTORS).write_bytes(content)
    assert not _complete(tmp_path)
    embed_corpus("c", tmp_path, Counting())
    assert _complete(tmp_path)
    assert len(list((tmp_path / "c").glob("vectors-*"))) == 1


def test_a_missing_corpus_and_one_being_built_are_not_embedded(tmp_path: Path) -> None:
    with pytest.raises(MissingError):
        embed_corpus("c", tmp_path, Counting())
    assert not (tmp_path / "c").exists()
    build_corpus("c", _documents(), tmp_path)
    with build_lock("c", tmp_path), pytest.raises(UsageError, match="is building"):
        embed_corpus("c", tmp_path, Counting())


def test_counting_embedded_texts_needs_no_readable_file(tmp_path: Path) -> None:
    assert embedded_counts(tmp_path / "absent") == {}
    (tmp_path / "bad").write_bytes(b"no database" * 1000)
    assert embedded_counts(tmp_path / "bad") == {}
    with sqlite3.connect(tmp_path / "empty") as database:
        database.execute("CREATE TABLE other (x)")
    database.close()
    assert embedded_counts(tmp_path / "empty") == {}
