"""Cutting: exact offsets, nothing lost, nothing twice, sizes within bounds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offline_judge.retrieval.corpus.documents import Document
from offline_judge.retrieval.corpus.passages import MAX_WORDS, count_words, cut_document

_WORDS = st.sampled_from(
    [
        "a",
        "word",
        "Sentence",
        "end.",
        "end!\n",
        "stop.\n\n",
        "Mr.",
        "U.S.",
        "3.14",
        "\t",
        "e.g.",
        "\u6771\u4eac\u306f\u9996\u90fd\u3002",
        "\u0e01" * 70,
        "x" * 300,
        "list;",
        "\u00a0",
        "\r\n\r\n",
        "\ud55c\uad6d",
    ]
)
_TEXTS = st.lists(_WORDS, max_size=400).map(" ".join) | st.text(max_size=300)


def _cut(text: str) -> list[tuple[int, int, str]]:
    found = cut_document(Document("d", "T", text))
    return [(passage.start, passage.end, passage.text) for passage in found]


@given(_TEXTS)
def test_passages_hold_all_that_is_not_blank_and_do_not_overlap(text: str) -> None:
    position = 0
    for start, end, part in _cut(text):
        assert start >= position
        assert not text[position:start].strip()
        assert part == text[start:end] == part.strip() != ""
        position = end
    assert not text[position:].strip()


@given(_TEXTS)
def test_no_passage_is_longer_than_the_bound(text: str) -> None:
    for _, _, part in _cut(text):
        assert count_words(part) <= MAX_WORDS
        assert len(part.split()) <= 160


def _prose(sentences: int, words: int) -> str:
    return " ".join(f"S{i} " + "word " * (words - 2) + "end." for i in range(sentences))


@pytest.mark.parametrize("sentences", [9, 13, 22, 57, 100])
def test_prose_is_cut_at_sentences_into_even_passages(sentences: int) -> None:
    parts = [part for _, _, part in _cut(_prose(sentences, 14))]
    assert all(part.endswith("end.") for part in parts)
    assert all(80 <= len(part.split()) <= 150 for part in parts)


def test_a_short_document_is_one_passage() -> None:
    text = _prose(10, 14)
    assert _cut(f"  {text}\n") == [(2, 2 + len(text), text)]


def test_a_passage_ends_with_its_paragraph_where_that_is_near() -> None:
    text = "\n\n".join(_prose(7, 14) for _ in range(3))
    assert [part for _, _, part in _cut(text)] == text.split("\n\n")


def test_abbreviations_and_initials_do_not_end_a_sentence() -> None:
    sentence = "Then Dr. J. Smith of St. Louis met Mr. Brown vs. No. 5 again and again. "
    parts = [part for _, _, part in _cut(sentence * 40)]
    assert len(parts) > 1
    assert all(part.endswith("again.") for part in parts)


def test_japanese_is_cut_at_its_own_full_stops() -> None:
    sentence = "\u6771\u4eac\u306f\u65e5\u672c\u306e\u9996\u90fd\u3067\u3042\u308b\u3002"
    parts = [part for _, _, part in _cut(sentence * 60)]
    assert len(parts) > 2
    assert all(part.endswith("\u3002") and 150 <= len(part) <= 300 for part in parts)


def test_a_long_list_is_cut_between_its_entries() -> None:
    text = "; ".join(f"entry number {i} of the list" for i in range(100))
    parts = [part for _, _, part in _cut(text)]
    assert len(parts) > 2
    assert all(part.endswith(";") for part in parts[:-1])


def test_ids_are_stable_and_number_the_passages() -> None:
    document = Document("doc", "T", _prose(30, 14))
    first, second = list(cut_document(document)), list(cut_document(document))
    assert first == second
    assert [passage.id for passage in first] == [f"doc#{n}" for n in range(len(first))]
    assert {passage.document_id for passage in first} == {"doc"}


@pytest.mark.parametrize("text", ["", " \n\t ", "\u00a0"])
def test_a_blank_document_has_no_passage(text: str) -> None:
    assert _cut(text) == []
