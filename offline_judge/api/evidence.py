"""The record of evidence: what searches have found so far, kept on this machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from offline_judge.domain.record import PassageHistory, Pruned, RecordedPassage, RecordState
    from offline_judge.settings import Settings

Tell = Callable[[str], None]


def _silent(_sentence: str) -> None:
    pass


def _unwatched(_done: int, _of: int) -> None:
    pass


def evidence_stats(settings: Settings) -> RecordState:
    """What the record holds, how many passages have vectors, and how far Chroma is.

    Raises:
        StorageError: the record cannot be read.
    """
    from offline_judge import wiring

    return wiring.record_state(settings)


@dataclass(frozen=True)
class EvidenceQuery:
    """What to look for in the record.

    Attributes:
        query: Words, or a question.
        sources: Only passages from one of these; empty for any.
        date_from: Only of documents of this day or later: `YYYY`, `YYYY-MM` or `YYYY-MM-DD`.
        date_to: Only of documents of this day or earlier. With either limit, documents without a
            date are left out.
        limit: Passages at most.
    """

    query: str
    sources: Sequence[str] = ()
    date_from: str = ""
    date_to: str = ""
    limit: int = 10


def evidence_search(
    asked: EvidenceQuery, settings: Settings, tell: Tell = _silent
) -> tuple[RecordedPassage, ...]:
    """The best recorded passages for a query, by vectors and words; by words where it has to be.

    Args:
        asked: What to look for.
        settings: Where the record is, and what embeds the query.
        tell: Takes a sentence where the search goes another way than wanted.

    Raises:
        UsageError: the query has no word, a date is none, or there is no such source.
        StorageError: the record cannot be read.
        BackendError: the embedder failed.
    """
    from offline_judge import wiring
    from offline_judge.retrieval.evidence.model import Filters

    filters = Filters(
        date_from=asked.date_from, date_to=asked.date_to, sources=tuple(asked.sources)
    )
    return wiring.find_recorded(asked.query, settings, filters, limit=asked.limit, tell=tell)


def evidence_show(id: str, settings: Settings) -> PassageHistory:
    """One passage: where, when and for which queries it was found.

    Args:
        id: Its number in the record, or its id as a trace shows it.
        settings: Where the record is.

    Raises:
        UsageError: there is no such passage, or several texts have had that id.
        StorageError: the record cannot be read.
    """
    from offline_judge import wiring

    return wiring.passage_history(id, settings)


def evidence_prune(
    settings: Settings,
    *,
    older_than: int | None = None,
    source: str = "",
    dry_run: bool = False,
    tell: Tell = _silent,
) -> Pruned:
    """Delete recorded passages with their vectors, and every answer that names one of them.

    Args:
        settings: Where the record is.
        older_than: What was found the last time at least so many days ago; None for any age.
        source: What comes from there; "" for anywhere. With both, what both mean.
        dry_run: Only say what would go.
        tell: Takes a sentence where Chroma cannot follow at once.

    Raises:
        UsageError: neither limit is given, or there is no such source.
        StorageError: the record cannot be written; then nothing is deleted.
    """
    from offline_judge import wiring

    return wiring.prune_record(
        settings, older_than=older_than, source=source, dry_run=dry_run, tell=tell
    )


def evidence_rebuild(
    settings: Settings, *, tell: Tell = _silent, progress: Callable[[int, int], None] = _unwatched
) -> RecordState:
    """Fill Chroma anew from the vectors of record; nothing is embedded again.

    Args:
        settings: Where the record is.
        tell: Takes sentences for people.
        progress: Told (vectors in the index, vectors in all) of the embedder in hand.

    Raises:
        MissingDependencyError: Chroma is not installed.
        UsageError: another process has it open.
        StorageError: the record cannot be read, or Chroma not be filled.
    """
    from offline_judge import wiring

    return wiring.rebuild_index(settings, tell, progress)
