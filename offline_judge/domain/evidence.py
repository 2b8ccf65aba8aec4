"""What a search finds and what a judge is shown of it."""

from __future__ import annotations

from enum import StrEnum

from offline_judge.domain.base import Frozen


class Passage(Frozen):
    """A piece of a document.

    Attributes:
        id: Unique in its corpus, stable over rebuilds of the same content.
        document_id: The document it was cut from.
        title: The document's title.
        text: The passage itself, `document[start:end]`.
        start: Character offset of the first character in the document's text.
        end: Character offset behind the last.
        source: Where it comes from, `corpus:NAME` or a URL.
        url: Address of the document, empty where it has none.
        date: Date of the document, ISO 8601, empty where it is unknown.
    """

    id: str
    document_id: str
    title: str
    text: str
    start: int = 0
    end: int = 0
    source: str = ""
    url: str = ""
    date: str = ""


class SearchHit(Frozen):
    """One result: rank from 1, and the provider's own score.

    `found_at` (UTC, ISO 8601) is set where the hit comes out of the evidence record; `cached` says
    that it was found for another query than this one.
    """

    rank: int
    score: float
    passage: Passage
    cached: bool = False
    found_at: str = ""


class Amendment(Frozen):
    """What a person changes of what searches find for a sample.

    Attributes:
        own: Passages of their own, the newest last.
        without: Ids of passages that are left out.
    """

    own: tuple[Passage, ...] = ()
    without: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.own or self.without)


UNCHANGED = Amendment()


class EvidenceState(StrEnum):
    """What the search came to. An outage (`FAILED`) is never told as `NONE_FOUND`.

    `CACHED` is evidence that was found earlier for other queries, and only that.
    """

    FOUND = "found"
    CACHED = "cached"
    NONE_FOUND = "none_found"
    FAILED = "failed"
    NOT_SEARCHED = "not_searched"
