"""Words of a text as SQuAD compares them, and three scores over them; pure."""

from __future__ import annotations

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Sequence

_ARTICLES = frozenset({"a", "an", "the"})
_HYPHENS = frozenset("-\u2010\u2011")
# Thai and Lao, Myanmar, Khmer, the marks of CJK text, kana, Han; and Hangul, whose words carry
# their particles glued on, so that "서울은" would never hold "서울".
_UNSPACED = (
    "\u0e01-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3041-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U000323af"
)
_WORD = re.compile(rf"[{_UNSPACED}]|[^\s{_UNSPACED}]+")


def words(text: str, *, articles: bool = False) -> tuple[str, ...]:
    """The words of a text, normalised as SQuAD's evaluation script does it.

    Unicode NFKC, lower case, no punctuation, and no English article unless `articles`. As in
    SQuAD a hyphen or a point vanishes ("U.S." is "us"), but a dash or a slash parts words, since
    chat answers put dashes between words without spaces. Scripts that put no spaces between
    words, and Hangul, give one word a character, as evaluations in many languages do (MLQA,
    KorQuAD).
    """
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    # Once more, since a mark may now stand right behind the letter it belongs to.
    spelt = unicodedata.normalize("NFKC", "".join(map(_spelt, folded)))
    found: list[str] = _WORD.findall(spelt)
    return tuple(word for word in found if articles or word not in _ARTICLES)


def exact(response: Sequence[str], answer: Sequence[str]) -> float:
    """1 where both are the same words in the same order, else 0."""
    return float(tuple(response) == tuple(answer))


def contains(response: Sequence[str], answer: Sequence[str]) -> float:
    """1 where the answer's words stand in the response, whole and next to one another, else 0.

    An answer without words is contained in nothing.
    """
    size = len(answer)
    starts = range(len(response) - size + 1) if size else ()
    return float(any(tuple(response[at : at + size]) == tuple(answer) for at in starts))


def token_f1(response: Sequence[str], answer: Sequence[str]) -> float:
    """Harmonic mean of precision and recall of the response's words, each as often as it stands.

    F1 = 2 P R / (P + R) as in SQuAD (arXiv 1606.05250, section 6.1); 0 without a common word.
    """
    common = (Counter(response) & Counter(answer)).total()
    return 2 * common / (len(response) + len(answer)) if common else 0.0


def _spelt(char: str) -> str:
    if char in _HYPHENS:
        return ""
    kind = unicodedata.category(char)
    if kind == "Pd" or char == "/":
        return " "
    dropped = kind.startswith("P") or kind == "Cf" or char in string.punctuation
    return "" if dropped else char
