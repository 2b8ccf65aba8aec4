"""A passage in the text it was cut from, as far as the trace holds that."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from offline_judge_tui.traces.model import Evidence

_WORD = re.compile(r"\w+")
_SHORTEST = 4
"""Letters of a word that tells something; shorter ones only with a digit in them."""


@dataclass(frozen=True)
class Around:
    """What stands before and behind a passage in its document; gaps are told within."""

    before: str = ""
    behind: str = ""


def around(one: Evidence, evidence: Iterable[Evidence]) -> Around:
    """Put other passages of the same document round one.

    Only passages whose offsets fit their texts are used. What lies between is not in the trace,
    and is told by its length.
    """
    parts = sorted(
        (other.passage.start, other.passage.text)
        for other in evidence
        if _same_document(one, other) and _is_placed(other)
    )
    if not _is_placed(one):
        return Around()
    start, end = one.passage.start, one.passage.end
    before = [(at, text[: start - at]) for at, text in parts if at < start]
    behind = [
        (max(at, end), text[max(0, end - at) :]) for at, text in parts if at + len(text) > end
    ]
    return Around(_joined(before, stop=start), _joined(behind, begin=end))


def shared_words(text: str, passage: str) -> list[tuple[int, int]]:
    """Where words of `text` stand in a passage, as ranges of characters."""
    words = {word for match in _WORD.finditer(text) if (word := _telling(match[0]))}
    found = _WORD.finditer(passage)
    return [match.span() for match in found if _telling(match[0]) in words] if words else []


def _telling(word: str) -> str:
    folded = word.casefold()
    return folded if len(folded) >= _SHORTEST or any(c.isdigit() for c in folded) else ""


def _same_document(one: Evidence, other: Evidence) -> bool:
    ours, theirs = one.passage, other.passage
    return (
        other.key != one.key
        and theirs.document_id == ours.document_id
        and theirs.source == ours.source
    )


def _is_placed(one: Evidence) -> bool:
    passage = one.passage
    return bool(passage.document_id) and passage.end - passage.start == len(passage.text)


def _joined(
    parts: Iterable[tuple[int, str]], *, begin: int | None = None, stop: int | None = None
) -> str:
    """Stretches of a document in order, overlaps once, gaps told; from `begin` and to `stop`."""
    joined: list[str] = []
    at = begin
    for start, text in parts:
        if at is not None and start > at:
            joined.append(_gap(start - at))
        new = text if at is None else text[max(0, at - start) :]
        joined.append(new)
        at = max(at or 0, start + len(text))
    if joined and stop is not None and at is not None and at < stop:
        joined.append(_gap(stop - at))
    return "".join(joined)


def _gap(length: int) -> str:
    return f"\n[… {length:,} characters that the trace does not hold …]\n"
