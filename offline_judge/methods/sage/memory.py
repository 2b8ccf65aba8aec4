"""What SAGE remembers of a sample: its rounds, append-only, with passages beside summaries."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from offline_judge.domain.evidence import EvidenceState, SearchHit

_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Evidence:
    """A passage in the notes: its id (`E1`, `E2`, ...) and how a prompt shows it."""

    id: str
    passage_id: str
    shown: str


@dataclass(frozen=True)
class Round:
    """One finished round; `stance` is supports, contradicts or inconclusive."""

    number: int
    query: str
    evidence: tuple[Evidence, ...]
    summary: str
    stance: str
    stance_masses: dict[str, float]
    missing: str
    fallback: bool = False


@dataclass
class Memory:
    """The rounds of one sample so far, and what was asked on the way."""

    rounds: list[Round] = field(default_factory=list)
    written_queries: list[str] = field(default_factory=list)
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

    def summaries_of(self, evidence: Collection[Evidence]) -> tuple[str, ...]:
        """What the notes say of the rounds that found this evidence, oldest first."""
        rounds = (r for r in self.rounds if r.summary and not set(r.evidence).isdisjoint(evidence))
        return tuple(dict.fromkeys(round_.summary for round_ in rounds))

    def state(self) -> EvidenceState:
        """Found, none found, or failed; a failed search that others made up for is found."""
        if self.evidence:
            return EvidenceState.FOUND
        return EvidenceState.FAILED if self.failed else EvidenceState.NONE_FOUND

    def distinct_queries(self) -> int:
        """Distinct normalised queries the judge wrote."""
        return len({normalise_query(query) for query in self.written_queries})


def _evidence(name: str, hit: SearchHit) -> Evidence:
    passage = hit.passage
    return Evidence(
        name, passage.id, f"{passage.title}: {passage.text}" if passage.title else passage.text
    )


def normalise_query(query: str) -> str:
    """Lower-case words in order, without punctuation; two queries are the same if this is."""
    return " ".join(_WORD.findall(query.casefold()))
