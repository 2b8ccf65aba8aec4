"""What SAGE remembers of a sample: its rounds, append-only, with passages beside summaries."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from offline_judge.domain.evidence import EvidenceState, SearchHit
from offline_judge.protocols import Reading

_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Evidence:
    """A passage in the notes: its id (`E1`, `E2`, ...) and how a prompt shows it.

    `cached` says it was found earlier for another query, not by a search of this run.
    """

    id: str
    passage_id: str
    shown: str
    cached: bool = False


@dataclass(frozen=True)
class Reflection:
    """The response read against one passage.

    Attributes:
        item: The passage.
        relevance: Log-odds that the passage says what the answer is.
        reading: Masses of correct and incorrect, and the conversation they were read in.
    """

    item: Evidence
    relevance: float
    reading: Reading


@dataclass(frozen=True)
class Round:
    """One finished round.

    Attributes:
        number: From 1.
        query: What was searched for.
        evidence: The new passages.
        relevance: Id of a passage to the judge's probability that it says what the answer is.
        summary: What the most relevant passage says about the question, in a sentence.
        reflections: The response read against passages of this round, most relevant first.
        missing: What should be looked up next.
        fallback: The query repeats an earlier one.
    """

    number: int
    query: str
    evidence: tuple[Evidence, ...] = ()
    relevance: dict[str, float] = field(default_factory=dict)
    summary: str = ""
    reflections: tuple[Reflection, ...] = ()
    missing: str = ""
    fallback: bool = False


@dataclass
class Memory:
    """The rounds of one sample so far, and what was asked on the way."""

    rounds: list[Round] = field(default_factory=list)
    queries: list[str] = field(default_factory=list)
    evidence: dict[str, Evidence] = field(default_factory=dict)
    searches: int = 0
    failed: int = 0

    def add_hits(self, hits: Sequence[SearchHit], limit: int) -> tuple[Evidence, ...]:
        """Take up to `limit` passages that are not in the notes yet, and give them ids."""
        known = {item.passage_id for item in self.evidence.values()}
        added: list[Evidence] = []
        for hit in hits:
            if hit.passage.id in known or len(added) == limit:
                continue
            item = _evidence(f"E{len(self.evidence) + 1}", hit)
            self.evidence[item.id] = item
            known.add(item.passage_id)
            added.append(item)
        return tuple(added)

    def notes(self) -> tuple[str, ...]:
        """One line a round, oldest first; what the query writer sees of the earlier rounds."""
        return tuple(
            f"searched: {r.query} | found: {r.summary or 'nothing'} | missing: {r.missing}"
            for r in self.rounds
        )

    def reflections(self) -> tuple[Reflection, ...]:
        """All readings of the response against evidence, oldest first."""
        return tuple(reflection for round_ in self.rounds for reflection in round_.reflections)

    def state(self) -> EvidenceState:
        """Found, cached, none found, or failed; a failure that others made up for is found."""
        if self.evidence:
            cached = all(item.cached for item in self.evidence.values())
            return EvidenceState.CACHED if cached else EvidenceState.FOUND
        return EvidenceState.FAILED if self.failed else EvidenceState.NONE_FOUND

    def distinct_queries(self) -> int:
        """Distinct normalised queries that were searched with."""
        return len({normalise_query(query) for query in self.queries})


def _evidence(name: str, hit: SearchHit) -> Evidence:
    passage = hit.passage
    shown = f"{passage.title}: {passage.text}" if passage.title else passage.text
    return Evidence(name, passage.id, shown, hit.cached)


def normalise_query(query: str) -> str:
    """Lower-case words in order, without punctuation; two queries are the same if this is."""
    return " ".join(_WORD.findall(query.casefold()))
