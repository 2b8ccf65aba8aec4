"""How passages and queries become index terms; the tantivy schema."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import TYPE_CHECKING

from offline_judge.retrieval.corpus.passages import UNSPACED

if TYPE_CHECKING:
    import tantivy

SCHEMA = 2  # goes up when an index built before would be searched wrongly
TITLE_WEIGHT = 3
KEYWORD_WEIGHT = 2
# A query of more distinct terms is cut: the first ones are its question.
MAX_TERMS = 256

WORDS = "words"  # title, keywords and text as English stems
PAIRS = "pairs"  # the same as pairs of neighbouring characters, for scripts without spaces
STORED = "passage"
DOCUMENT = "document"  # id of the document, by which its passages are taken out

# Words that questions are made of; a query is searched without them unless it has no others.
# Measured on 2,240 questions: recall at 5 rises from .915 to .921, and on tables of facts, where
# such words are rare and therefore weigh much, far more.
_FUNCTION_WORDS = """
a about an and any are as at be been being but by can could did do does for from give given had
has have he her his how i if in into is it its many me much my of on or our she so some tell
than that the their them then there these they this those to was we were what when where which
who whom whose why will with would you your
"""
FUNCTION_WORDS = frozenset(_FUNCTION_WORDS.split())

_ANALYZER = "english_stems"
_BLANKS = "blanks"
_PLAIN_WORD = re.compile(r"(?<!\w)[A-Za-z]+(?!\w)")
_LETTER = re.compile(r"\w")
# Korean has spaces but glues particles to its words, so it is searched by pairs as well.
_RUN = re.compile(f"[{UNSPACED}\uac00-\ud7a3]+")


def english() -> tantivy.TextAnalyzer:
    """Words in lower case without accents, stemmed; other languages keep most of their forms."""
    import tantivy

    builder = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
    for step in (
        tantivy.Filter.remove_long(40),
        tantivy.Filter.lowercase(),
        tantivy.Filter.ascii_fold(),
        tantivy.Filter.stemmer("English"),
    ):
        builder = builder.filter(step)
    return builder.build()


def schema() -> tantivy.Schema:
    """Two searched fields without positions, the document's id, and the passage as JSON."""
    import tantivy

    builder = tantivy.SchemaBuilder()
    builder.add_text_field(WORDS, tokenizer_name=_ANALYZER, index_option="freq")
    builder.add_text_field(PAIRS, tokenizer_name=_BLANKS, index_option="freq")
    builder.add_text_field(DOCUMENT, tokenizer_name="raw", index_option="basic")
    builder.add_bytes_field(STORED, stored=True, indexed=False)
    return builder.build()


def register(index: tantivy.Index) -> None:
    """Tell an opened index its analyzers; they are not stored with it."""
    import tantivy

    index.register_tokenizer(_ANALYZER, english())
    blanks = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace()).build()
    index.register_tokenizer(_BLANKS, blanks)


def index_fields(title: str, keywords: Iterable[str], text: str) -> dict[str, str]:
    """Field name to what is indexed under it.

    Title and keywords are repeated within one field instead of boosted as fields of their own:
    BM25 then sees one length and one frequency, which finds more.
    """
    parts = [title] * TITLE_WEIGHT + [" ".join(keywords)] * KEYWORD_WEIGHT + [text]
    whole = _normal("\n".join(parts))
    return {WORDS: whole, PAIRS: " ".join(pairs(whole))}


def pairs(text: str) -> list[str]:
    """Pairs of neighbouring characters in runs of scripts without spaces; a lone one as it is."""
    found: list[str] = []
    for match in _RUN.finditer(text):
        run = match.group()
        found.extend(run[i : i + 2] for i in range(max(1, len(run) - 1)))
    return found


def build_query(query: str, analyzer: tantivy.TextAnalyzer) -> tantivy.Query | None:
    """Any term may match, each distinct one counts once; None where the query has no term.

    Made without tantivy's query parser, which stumbles over stray quotes, colons and brackets.
    """
    import tantivy

    text = _content(_normal(query))
    terms = [(WORDS, term) for term in analyzer.analyze(text)]
    terms += [(PAIRS, pair) for pair in pairs(text)]
    distinct = list(dict.fromkeys(terms))[:MAX_TERMS]
    if not distinct:
        return None
    fields = schema()
    return tantivy.Query.boolean_query(
        [
            (tantivy.Occur.Should, tantivy.Query.term_query(fields, field, term, "freq"))
            for field, term in distinct
        ]
    )


def _content(query: str) -> str:
    """The query without function words, or as it is where nothing else is in it."""
    kept = _PLAIN_WORD.sub(_unless_function, query)
    return kept if _LETTER.search(kept) else query


def _unless_function(match: re.Match[str]) -> str:
    return " " if match.group().lower() in FUNCTION_WORDS else match.group()


def _normal(text: str) -> str:
    """One form for each character; halves of surrogate pairs, which no index takes, become `?`."""
    return unicodedata.normalize("NFKC", text.encode("utf-8", "replace").decode())
