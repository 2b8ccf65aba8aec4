"""What the record of evidence is asked, and what it answers."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import asdict, dataclass
from typing import Any

from offline_judge.domain.base import Frozen, content_hash
from offline_judge.domain.evidence import Passage, SearchHit

_DATE = re.compile(r"\d{4}(?:-\d{2}(?:-\d{2})?)?")


@dataclass(frozen=True)
class Scope:
    """What, beside its words, makes a query the same as an earlier one.

    Attributes:
        locale: Language or region that the search was made for, "" for none.
        date_from: Only documents of this day or later, ISO 8601, "" for no limit.
        date_to: Only documents of this day or earlier, ISO 8601, "" for no limit.
        max_age_days: Only what was found at most so many days ago; 0 for no limit.
        as_written: Only a query of the very same letters is the same; for a provider that other
            letters may make find something else, and of which one must not see in its answers
            whether they were kept.
    """

    locale: str = ""
    date_from: str = ""
    date_to: str = ""
    max_age_days: int = 0
    as_written: bool = False


@dataclass(frozen=True)
class Question:
    """One query to one provider: the key of the exact cache.

    Attributes:
        provider: The provider's name.
        identity: Its content identity.
        query: As it was asked.
        scope: What else has to be the same.
    """

    provider: str
    identity: dict[str, Any]
    query: str
    scope: Scope = Scope()

    @property
    def normal(self) -> str:
        """The query as it is compared."""
        return normal_query(self.query)

    @property
    def key(self) -> str:
        """SHA-256 over provider, normalised query (or as written) and scope."""
        query = self.normal
        if self.scope.as_written:
            query = self.query.encode("utf-8", "replace").decode()
        parts = {"identity": self.identity, "query": query, "scope": asdict(self.scope)}
        return content_hash({"provider": self.provider, **parts})


@dataclass(frozen=True)
class Answer:
    """What the record holds for a question: its first hits, and when they were found (UTC)."""

    hits: tuple[SearchHit, ...]
    found_at: str


@dataclass(frozen=True)
class Filters:
    """Which passages count. A document without a date passes no limit on dates.

    Attributes:
        date_from: Of this day or later, `YYYY`, `YYYY-MM` or `YYYY-MM-DD`, "" for no limit.
        date_to: Of this day or earlier; a month or a year stands for its last day.
        sources: From one of these sources; empty for any.
        not_sources: From none of these.
        found_after: Found at this time (UTC, ISO 8601) or later, "" for no limit.
    """

    date_from: str = ""
    date_to: str = ""
    sources: tuple[str, ...] = ()
    not_sources: tuple[str, ...] = ()
    found_after: str = ""

    @property
    def days(self) -> tuple[int, int]:
        """First and last day as numbers like 20260131; (0, 99999999) without limits."""
        first = day_number(self.date_from) or 0
        last = day_number(self.date_to, last=True) or 99_999_999
        return first, last

    @property
    def dated(self) -> bool:
        """There is a limit on dates."""
        return bool(self.date_from or self.date_to)

    def __bool__(self) -> bool:
        return self != Filters()


class Found(Frozen):
    """One passage that the record offers.

    Attributes:
        number: The passage's number in the record.
        passage: As it was found the last time.
        score: What it is ranked by.
        similarity: Cosine with the query; where no vector is at hand, the share of the query's
            words in it, but no more than the least cosine of hits with better words. 0 to 1.
        found_at: When a search found it the last time; UTC, ISO 8601.
    """

    number: int
    passage: Passage
    score: float
    similarity: float
    found_at: str


class RecordStats(Frozen):
    """What is in the record.

    Attributes:
        vectors: Embedder with its dimension (`NAME/384`) to the number of vectors.
        sources: Source to the number of passages from there.
        first: When the oldest query was answered, "" where there is none.
        last: When the newest one was.
        size: Bytes of the database.
    """

    queries: int
    documents: int
    passages: int
    vectors: dict[str, int]
    sources: dict[str, int]
    first: str
    last: str
    size: int


def normal_query(query: str) -> str:
    """NFKC, casefold, runs of white space as one; queries are the same if this is."""
    whole = query.encode("utf-8", "replace").decode()
    return " ".join(unicodedata.normalize("NFKC", whole).casefold().split())


def day_number(date: str, *, last: bool = False) -> int | None:
    """`2026-01-31` as 20260131; a year or a month as its first or last day; None for no date."""
    match = _DATE.match(date)
    if match is None:
        return None
    digits = match.group().replace("-", "")
    return int(digits + ("9999" if last else "0101")[len(digits) - 4 :])
