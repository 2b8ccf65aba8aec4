"""Bringing a corpus up to date: what is cut, indexed and kept, and that results stay the same."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from offline_judge.domain.evidence import Passage, SearchHit
from offline_judge.retrieval.corpus.build import Source, build_corpus
from offline_judge.retrieval.corpus.documents import Document, Unread
from offline_judge.retrieval.corpus.passages import cut_document
from offline_judge.retrieval.corpus.store import CorpusManifest, read_manifest
from offline_judge.retrieval.search.corpus import CorpusSearch

WORDS = ("otter", "badger", "heron", "salmon", "willow", "river", "stone", "moss", "fern", "alder")


def _documents(count: int = 60) -> list[Document]:
    return [
        Document(f"d{n:03}", WORDS[n % 10], f"{WORDS[n % 7]} {WORDS[n % 3]} number{n} lives here.")
        for n in range(count)
    ]


class Cutter:
    """Cuts documents and remembers which."""

    def __init__(self) -> None:
        self.cut: list[str] = []

    __name__ = "cut_document"

    def __call__(self, document: Document) -> Iterator[Passage]:
        self.cut.append(document.id)
        yield from cut_document(document)


def _build(documents: Sequence[Document | Unread], corpora: Path, cutter: Cutter) -> CorpusManifest:
    cutter.cut.clear()
    return build_corpus("c", documents, corpora, cut=cutter)


@pytest.fixture
def cutter() -> Cutter:
    return Cutter()


def _hits(corpora: Path, query: str) -> tuple[SearchHit, ...]:
    return asyncio.run(CorpusSearch("c", corpora).search(query, limit=100))


def test_only_what_is_new_or_changed_is_cut(tmp_path: Path, cutter: Cutter) -> None:
    documents = _documents()
    _build(documents, tmp_path, cutter)
    assert len(cutter.cut) == 60
    documents[7] = Document("d007", "otter", "It changed.")
    del documents[20]
    documents.append(Document("new", "pike", "A pike hunts."))
    manifest = _build(documents, tmp_path, cutter)
    assert cutter.cut == ["d007", "new"]
    assert (manifest.documents, manifest.passages, manifest.stale) == (60, 60, 2)
    assert read_manifest("c", tmp_path) == manifest
    assert [h.passage.document_id for h in _hits(tmp_path, "pike")] == ["new"]
    assert [h.passage.document_id for h in _hits(tmp_path, "changed")] == ["d007"]
    assert _hits(tmp_path, "number20") == ()
    assert _hits(tmp_path, "number7") == ()


def test_added_documents_give_the_scores_of_a_whole_build(tmp_path: Path, cutter: Cutter) -> None:
    documents = _documents()
    _build(documents[:50], tmp_path / "a", cutter)
    grown = _build(documents, tmp_path / "a", cutter)
    whole = _build(documents, tmp_path / "b", cutter)
    assert (grown.content, grown.history) == (whole.content, "")
    for query in ("otter", "river stone", "number55 lives"):
        assert _hits(tmp_path / "a", query) == _hits(tmp_path / "b", query)


def test_many_changes_give_the_scores_of_a_whole_build(tmp_path: Path, cutter: Cutter) -> None:
    documents = _documents()
    _build(documents, tmp_path / "a", cutter)
    for number in range(0, 60, 4):
        documents[number] = Document(f"d{number:03}", "lynx", f"A lynx passes {number}.")
    changed = _build(documents, tmp_path / "a", cutter)
    assert len(cutter.cut) == 15
    whole = _build(documents, tmp_path / "b", cutter)
    assert (changed.content, changed.history, changed.stale) == (whole.content, "", 0)
    for query in ("otter", "lynx passes", "number55 lives"):
        assert _hits(tmp_path / "a", query) == _hits(tmp_path / "b", query)


def test_few_changes_are_told_apart_from_a_whole_build(tmp_path: Path, cutter: Cutter) -> None:
    documents = _documents()
    _build(documents, tmp_path / "a", cutter)
    documents[3] = Document("d003", "lynx", "A lynx passes.")
    changed = _build(documents, tmp_path / "a", cutter)
    whole = _build(documents, tmp_path / "b", cutter)
    # The passage that is gone still weighs in the statistics, so the runs are not of one kind.
    assert changed.content == whole.content
    assert changed.history
    one, other = (CorpusSearch("c", tmp_path / name).identity() for name in "ab")
    assert one != other


def test_the_order_of_documents_is_no_content(tmp_path: Path, cutter: Cutter) -> None:
    first = _build(_documents(), tmp_path / "a", cutter)
    again = _build(_documents()[::-1], tmp_path / "b", cutter)
    assert first.content == again.content
    assert _hits(tmp_path / "a", "otter river") == _hits(tmp_path / "b", "otter river")


def test_a_build_that_changes_nothing_keeps_the_index(tmp_path: Path, cutter: Cutter) -> None:
    first = _build(_documents(), tmp_path, cutter)
    again = _build(_documents(), tmp_path, cutter)
    assert cutter.cut == []
    assert again.index == first.index
    assert len(list((tmp_path / "c").glob("index-*"))) == 1
    assert len(_hits(tmp_path, "otter")) > 5


def test_a_document_with_the_same_origin_is_not_read(tmp_path: Path, cutter: Cutter) -> None:
    read: list[str] = []

    def unread(name: str, origin: str, text: str) -> Unread:
        def reading() -> Document:
            read.append(name)
            return Document(name, name, text)

        return Unread(name, origin, reading)

    _build([unread("a", "1", "otters"), unread("b", "1", "badgers")], tmp_path, cutter)
    _build([unread("a", "1", "otters"), unread("b", "2", "badgers")], tmp_path, cutter)
    assert read == ["a", "b", "b"]
    assert cutter.cut == []


def test_an_unread_document_may_be_left_out(tmp_path: Path, cutter: Cutter) -> None:
    manifest = _build([Unread("a", "1", lambda: None), *_documents(3)], tmp_path, cutter)
    assert manifest.documents == 3


def test_another_way_of_cutting_builds_all_anew(tmp_path: Path, cutter: Cutter) -> None:
    build_corpus("c", _documents(), tmp_path, source=Source("s"), cut=cutter)

    def whole(document: Document) -> Iterator[Passage]:
        yield from cutter(document)

    cutter.cut.clear()
    build_corpus("c", _documents(), tmp_path, source=Source("s"), cut=whole)
    assert len(cutter.cut) == 60


def test_keywords_are_still_searched_when_an_index_is_written_anew(
    tmp_path: Path, cutter: Cutter
) -> None:
    kept = Document("kept", "Badger", "It digs.", keywords=("Brock",))
    _build([kept, Document("b", "b", "b")], tmp_path, cutter)
    manifest = _build([kept, Document("b", "b", "changed")], tmp_path, cutter)
    assert (cutter.cut, manifest.stale) == (["b"], 0)
    (hit,) = _hits(tmp_path, "Brock")
    assert hit.passage == Passage(
        id="kept#0",
        document_id="kept",
        title="Badger",
        text="It digs.",
        end=8,
        source="corpus:c",
    )


def test_a_changed_document_with_its_url_and_date_is_found_as_it_is_now(
    tmp_path: Path, cutter: Cutter
) -> None:
    documents = _documents()
    documents[0] = Document("d000", "t", "lynx", url="https://a.example", date="2024-05-01")
    _build(documents, tmp_path, cutter)
    documents[0] = Document("d000", "t", "lynx", url="https://b.example", date="2024-05-02")
    _build(documents, tmp_path, cutter)
    (hit,) = _hits(tmp_path, "lynx")
    assert (hit.passage.url, hit.passage.date) == ("https://b.example", "2024-05-02")


def test_ten_thousand_equal_passages_are_ten_thousand_that_are_found_quickly(
    tmp_path: Path,
) -> None:
    # Backwards, so that the order of the index is not that of the ids.
    texts = (Document(f"d{n:05}", "Ants", "Ants live in colonies.") for n in range(9999, -1, -1))
    assert build_corpus("c", texts, tmp_path).passages == 10_000
    search = CorpusSearch("c", tmp_path)
    hits = asyncio.run(search.search("ants", limit=3, offset=3))
    assert [hit.passage.id for hit in hits] == ["d00003#0", "d00004#0", "d00005#0"]


@pytest.mark.parametrize("query", ["one", "One?", "another", "one " * 1000])
def test_a_corpus_of_one_word(tmp_path: Path, query: str) -> None:
    build_corpus("c", [Document("d", "", "one")], tmp_path)
    found = [hit.passage.text for hit in _hits(tmp_path, query)]
    assert found == ([] if query == "another" else ["one"])
