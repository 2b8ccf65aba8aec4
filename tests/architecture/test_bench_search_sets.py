"""The passages that the benchmark of searches makes up."""

from collections import Counter

from bench_search_sets import varied

from offline_judge.retrieval.corpus.documents import Document

WORDS = [f"word{chr(97 + n % 26)}{chr(97 + n // 26)}" for n in range(600)]
DOCUMENTS = [
    Document(f"d{n}", WORDS[500 + n], " ".join([*WORDS[:400], *WORDS[n : n + 50], "1969"]))
    for n in range(20)
]


def test_no_passage_is_like_another_and_the_first_are_the_real_ones() -> None:
    made = list(varied(DOCUMENTS, 200))
    assert made[:20] == DOCUMENTS
    assert len({document.id for document in made}) == 200
    assert len({document.text for document in made}) == 200


def test_copies_keep_most_words_and_the_lengths_of_texts() -> None:
    copy = list(varied(DOCUMENTS, 40))[20:]
    for before, after in zip(DOCUMENTS, copy, strict=True):
        assert len(after.text.split()) == len(before.text.split())
        common = Counter(before.text.split()) & Counter(after.text.split())
        assert 0.5 < common.total() / len(before.text.split()) < 1
    assert all(document.text.split()[-1] != "1969" for document in copy)


def test_the_same_copies_are_made_each_time() -> None:
    assert list(varied(DOCUMENTS, 100)) == list(varied(DOCUMENTS, 100))
