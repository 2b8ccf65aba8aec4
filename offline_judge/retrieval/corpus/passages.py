"""Cutting documents into passages with exact offsets."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from offline_judge.domain.evidence import Passage
from offline_judge.retrieval.corpus.documents import Document

# Sizes are in words. Scripts written without spaces count two characters as a word, and a run
# of more than twenty characters (an address, encoded data) counts as several.
TARGET_WORDS = 110
MAX_WORDS = 150

UNSPACED = (
    "\u0e00-\u0eff"  # Thai, Lao
    "\u1000-\u109f"  # Burmese
    "\u1780-\u17ff"  # Khmer
    "\u3005-\u30ff"  # Japanese kana
    "\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # Chinese characters
    "\uff66-\uff9f"
    "\U00020000-\U0003ffff"
)
_UNSPACED = re.compile(f"[{UNSPACED}]")
_WORD = re.compile(r"\S+")
_PARAGRAPH_END = re.compile(r"\n\s*\n\s*")
# Behind a full stop an end needs a space; behind an ideographic one it needs nothing.
_SENTENCE_END = re.compile(
    r"[.!?\u2026\u061f\u0964][\"')\]\u2019\u201d\u00bb]*\s+"
    r"|[\u3002\uff01\uff1f][\"'\u300d\u300f\uff09]*\s*"
)
# Full stops that do not end a sentence: initials and common abbreviations.
_ABBREVIATED = re.compile(r"(?:^|[\s(.])(?:[A-Z]|Mr|Mrs|Ms|Dr|St|Jr|Sr|No|vs|e\.g|i\.e)\.$")

_CLAUSE_ENDS = ";:\uff1b\u3001"


@dataclass(frozen=True)
class _Piece:
    """A stretch of text that stays whole: `text[start:end]`, blank at neither end."""

    start: int
    end: int
    words: int
    ends_paragraph: bool


def cut_document(document: Document) -> Iterator[Passage]:
    """Cut a document into passages of about 90 to 120 words, at most `MAX_WORDS`.

    Passages end at ends of sections, paragraphs or sentences; only a sentence longer than a
    passage is cut inside. They do not overlap and together hold all that is not blank. The id is
    `<document id>#<n>`, n from 0, so it stays the same as long as the document does.
    """
    for number, (start, end, title) in enumerate(_titled_spans(document)):
        yield Passage(
            id=f"{document.id}#{number}",
            document_id=document.id,
            title=title,
            text=document.text[start:end],
            start=start,
            end=end,
            url=document.url,
            date=document.date,
        )


def _titled_spans(document: Document) -> Iterator[tuple[int, int, str]]:
    """Where each passage begins and ends, and its title; none reaches into another section."""
    starts = [(0, document.title), *document.sections, (len(document.text), "")]
    for (begin, title), (following, _) in pairwise(starts):
        for start, end in _spans(document.text[begin:following]):
            yield begin + start, begin + end, title


def count_words(text: str) -> int:
    """Size of a text in words as defined above; never below its number of spaced words."""
    return sum(_word_size(match.group()) for match in _WORD.finditer(text))


def _word_size(word: str) -> int:
    unspaced = 0 if word.isascii() else len(_UNSPACED.findall(word))
    return max(1, -(-unspaced // 2) + (len(word) - unspaced) // 20)


def _spans(text: str) -> Iterator[tuple[int, int]]:
    """Pack pieces into passages of even size, preferring ends of paragraphs."""
    pieces = list(_pieces(text))
    left = sum(piece.words for piece in pieces)
    first, size = 0, 0
    for index, piece in enumerate(pieces):
        if size and _closes(pieces, index, size, left + size):
            yield pieces[first].start, pieces[index - 1].end
            first, size = index, 0
        size += piece.words
        left -= piece.words
    if pieces:
        yield pieces[first].start, pieces[-1].end


def _closes(pieces: Sequence[_Piece], index: int, size: int, left: int) -> bool:
    """Whether the passage of `size` words ends before `pieces[index]`.

    `left` counts the words of this passage and all behind it; sharing them out evenly avoids a
    last passage of a few words.
    """
    after = size + pieces[index].words
    if after > MAX_WORDS:
        return True
    passages = max(1, round(left / TARGET_WORDS))
    target = left / passages
    if pieces[index - 1].ends_paragraph and size >= 0.8 * target:
        return left - size >= 0.5 * TARGET_WORDS
    return passages > 1 and after - target > target - size


def _pieces(text: str) -> Iterator[_Piece]:
    start = 0
    for match in _PARAGRAPH_END.finditer(text):
        yield from _sentences(text, start, match.start())
        start = match.end()
    yield from _sentences(text, start, len(text))


def _sentences(text: str, start: int, end: int) -> Iterator[_Piece]:
    """Sentences of the paragraph `text[start:end]`."""
    spans: list[tuple[int, int]] = []
    begin = start
    for match in _SENTENCE_END.finditer(text, start, end):
        if match.end() < end and not _goes_on(text, match.start(), match.end()):
            spans.append((begin, match.end()))
            begin = match.end()
    spans.append((begin, end))
    trimmed = [span for span in (_trim(text, *span) for span in spans) if span[0] < span[1]]
    for number, (a, b) in enumerate(trimmed, start=1):
        yield from _whole_or_cut(text, a, b, number == len(trimmed))


def _goes_on(text: str, stop: int, following: int) -> bool:
    """Whether the sentence goes on behind its stop: lower case follows, or an abbreviation ends."""
    before = text[max(0, stop - 6) : stop + 1]
    return text[following].islower() or _ABBREVIATED.search(before) is not None


def _whole_or_cut(text: str, start: int, end: int, ends_paragraph: bool) -> Iterator[_Piece]:
    """The sentence as one piece, or in pieces of whole words where it is over-long."""
    words = count_words(text[start:end])
    if words <= TARGET_WORDS:
        yield _Piece(start, end, words, ends_paragraph)
        return
    begin, size, last = start, 0, start
    for a, b in _short_words(text, start, end):
        word = _word_size(text[a:b])
        full = size + word > TARGET_WORDS // 2
        if full or (size > TARGET_WORDS // 5 and text[last - 1] in _CLAUSE_ENDS):
            yield _Piece(begin, last, size, False)
            begin, size = a, 0
        size += word
        last = b
    yield _Piece(begin, last, size, ends_paragraph)


def _short_words(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Words of a sentence; a run without spaces comes in parts of forty characters."""
    for match in _WORD.finditer(text, start, end):
        for a in range(match.start(), match.end(), 40):
            yield a, min(a + 40, match.end())


def _trim(text: str, start: int, end: int) -> tuple[int, int]:
    part = text[start:end]
    return start + len(part) - len(part.lstrip()), end - (len(part) - len(part.rstrip()))
