"""Words of passages and queries as the record's full-text index knows them."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import TYPE_CHECKING

from offline_judge.retrieval.corpus import analysis

if TYPE_CHECKING:
    import tantivy

TERMS = 1
"""Goes up when a passage or a query gets other terms: an index built before is built anew."""

MAX_TERMS = 64
"""A query of more distinct terms is cut: the first ones are its question."""


_PLAIN_WORD = re.compile(r"(?<!\w)[A-Za-z]+(?!\w)")
_LETTER = re.compile(r"\w")


def passage_terms(title: str, text: str) -> str:
    """What the index holds of a passage; depends on nothing but its content."""
    whole = analysis.index_fields(title, (), text)
    words = _analyzer().analyze(whole[analysis.WORDS])
    return " ".join([*map(_token, words), *map(_token, whole[analysis.PAIRS].split())])


def query_terms(query: str) -> list[str]:
    """Distinct terms of a query in their order, without function words where it has others."""
    text = _content(unicodedata.normalize("NFKC", query.encode("utf-8", "replace").decode()))
    found = [*map(_token, _analyzer().analyze(text)), *map(_token, analysis.pairs(text))]
    return list(dict.fromkeys(found))[:MAX_TERMS]


def match_any(terms: list[str]) -> str:
    """An FTS5 query that any of the terms satisfies."""
    return " OR ".join(f'"{term}"' for term in terms)


def _content(query: str) -> str:
    """The query without function words, or as it is where nothing else is in it."""

    def kept(match: re.Match[str]) -> str:
        return " " if match.group().lower() in analysis.FUNCTION_WORDS else match.group()

    text = _PLAIN_WORD.sub(kept, query)
    return text if _LETTER.search(text) else query


def _token(word: str) -> str:
    """The word in letters that FTS5's plainest tokenizer leaves whole."""
    return word if word.isascii() and word.isalnum() else f"x{word.encode().hex()}"


@lru_cache(maxsize=1)
def _analyzer() -> tantivy.TextAnalyzer:
    return analysis.english()
