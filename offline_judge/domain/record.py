"""What is told of the record of evidence: its state, one passage's history, and what was pruned."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class VectorState:
    """The vectors of one embedder.

    Attributes:
        embedder: Content identity of the embedder.
        dimension: Numbers in a vector.
        vectors: How many passages have one.
        indexed: How many of these Chroma holds.
        index_size: Bytes of Chroma's files, 0 where there are none.
        problem: What is wrong with Chroma's files, else empty.
    """

    embedder: str
    dimension: int
    vectors: int
    indexed: int = 0
    index_size: int = 0
    problem: str = ""


@dataclass(frozen=True)
class RecordState:
    """The record as it lies on disk.

    Attributes:
        path: The database.
        size: Bytes of it, its log included.
        queries: Searches whose answer is kept.
        results: Hits of all of them.
        documents: Documents that passages were found in.
        passages: Passages, each once however often it was found.
        sources: Source to number of passages from there.
        first: When the oldest answer was found; UTC, ISO 8601, "" where there is none.
        last: When the newest one was.
        vectors: One entry an embedder.
        chroma: Chroma's version, "" where it is not installed.
        holder: Pid of the process that has Chroma open, 0 for none.
        problem: Why runs give recorded passages no vectors, else empty.
    """

    path: str
    size: int = 0
    queries: int = 0
    results: int = 0
    documents: int = 0
    passages: int = 0
    sources: dict[str, int] = field(default_factory=dict)
    first: str = ""
    last: str = ""
    vectors: tuple[VectorState, ...] = ()
    chroma: str = ""
    holder: int = 0
    problem: str = ""


@dataclass(frozen=True)
class RecordedPassage:
    """A passage that a search of the record found.

    Attributes:
        number: Its number in the record, by which it is shown.
        id: Its id where it was found the last time.
        score: What it is ranked by.
        similarity: Cosine with the query, or the share of the query's words in it where there are
            no vectors; 0 to 1.
        title: Title of its document.
        text: The passage.
        source: Where it comes from, `corpus:NAME` or a URL.
        url: Address of the document, empty where it has none.
        date: Date of the document, empty where it is unknown.
        found_at: When a search found it the last time; UTC, ISO 8601.
    """

    number: int
    id: str
    score: float
    similarity: float
    title: str
    text: str
    source: str
    url: str
    date: str
    found_at: str


@dataclass(frozen=True)
class FoundPlace:
    """One document that a passage stands in.

    Attributes:
        id: The passage's id there.
        source: Where the document comes from.
        document: The document's id.
        url: Its address, empty where it has none.
        date: Its date, empty where it is unknown.
        start: Character offset of the passage in it.
        end: Character offset behind the passage.
        found_at: When a search found it there the last time.
    """

    id: str
    source: str
    document: str
    url: str
    date: str
    start: int
    end: int
    found_at: str


@dataclass(frozen=True)
class FoundFor:
    """One query that found a passage, with what it was asked of and the passage's rank."""

    query: str
    provider: str
    locale: str
    rank: int
    score: float
    found_at: str


@dataclass(frozen=True)
class PassageHistory:
    """One passage of the record: where, when and for which queries it was found.

    Attributes:
        number: Its number in the record.
        title: Title of its document.
        text: The passage.
        first_found_at: When it was found the first time.
        places: Where it stands, newest first.
        queries: What found it, newest first; empty where the answers were pruned.
        embedders: Embedders that it has a vector of.
    """

    number: int
    title: str
    text: str
    first_found_at: str
    places: tuple[FoundPlace, ...]
    queries: tuple[FoundFor, ...]
    embedders: tuple[str, ...]


@dataclass(frozen=True)
class Pruned:
    """What was deleted from the record, or would be.

    Attributes:
        dry_run: Nothing was deleted.
        queries: Searches whose answer goes, because it names what goes or is itself too old.
        documents: Documents of which nothing is left.
        passages: Passages found nowhere else.
        vectors: Vectors of these passages.
        left: Passages that stay.
        freed: Bytes by which the database became smaller.
    """

    dry_run: bool
    queries: int
    documents: int
    passages: int
    vectors: int
    left: int
    freed: int = 0
