"""Looking at the record of evidence, and keeping it: what `evidence` does."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from contextlib import closing, suppress
from datetime import date
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from offline_judge.domain.record import (
    PassageHistory,
    Pruned,
    RecordedPassage,
    RecordState,
    VectorState,
)
from offline_judge.errors import (
    MissingDependencyError,
    MissingError,
    StorageError,
    UsageError,
    WeightsError,
)
from offline_judge.wiring.embedders import HASHING, NO_EMBEDDER
from offline_judge.wiring.evidence import Tell, open_record, open_record_search
from offline_judge.wiring.installation import model_card, model_store, package_version

if TYPE_CHECKING:
    from offline_judge.retrieval.evidence.chroma import ChromaIndex
    from offline_judge.retrieval.evidence.model import Filters
    from offline_judge.retrieval.evidence.record import Record
    from offline_judge.retrieval.evidence.vectors import Space
    from offline_judge.settings import Settings

_CHROMA = "chroma"
_SHOWN = 5


def record_state(settings: Settings) -> RecordState:
    """What the record holds; nothing is made where there is none, and Chroma is not opened.

    Raises:
        StorageError: the record cannot be read.
    """
    from offline_judge.retrieval.evidence.lock import IndexLock
    from offline_judge.retrieval.evidence.prune import record_size

    path = _file(settings)
    chroma = package_version("chromadb") if importlib.util.find_spec("chromadb") else ""
    if not path.exists():
        return RecordState(str(path), chroma=chroma, problem=_no_embedder(settings))
    with closing(open_record(settings)) as record:
        stats = record.stats()
        results = int(record.database.one("SELECT count(*) FROM results"))
        vectors = tuple(_vector_state(record, space, settings) for space in _spaces(record))
    return RecordState(
        path=str(path),
        size=record_size(settings.evidence_path),
        queries=stats.queries,
        results=results,
        documents=stats.documents,
        passages=stats.passages,
        sources=stats.sources,
        first=stats.first,
        last=stats.last,
        vectors=vectors,
        chroma=chroma,
        holder=IndexLock(settings.evidence_path / _CHROMA / "lock").holding(),
        problem=_no_embedder(settings),
    )


def find_recorded(
    query: str, settings: Settings, filters: Filters, *, limit: int, tell: Tell
) -> tuple[RecordedPassage, ...]:
    """The best passages of the record for a query, by vectors and words.

    Raises:
        UsageError: the query has no word, a date is none, or there is no such source.
        StorageError: the record cannot be read.
        BackendError: the embedder failed.
    """
    if not any(character.isalnum() for character in query):
        raise UsageError("The query has no word.", remedy="Say what to look for.")
    _check_dates(filters)
    if not _file(settings).exists():
        return ()
    with closing(open_record(settings)) as record:
        if not record.database.one("SELECT count(*) FROM passages"):
            return ()
        for source in filters.sources:
            _check_source(record, source)
        with closing(open_record_search(record, settings, tell)) as search:
            found = search.find(query, limit=limit, filters=filters)
    return tuple(
        RecordedPassage(
            number=hit.number,
            score=hit.score,
            similarity=hit.similarity,
            found_at=hit.found_at,
            **hit.passage.model_dump(include={"id", "title", "text", "source", "url", "date"}),
        )
        for hit in found
    )


def passage_history(id: str, settings: Settings) -> PassageHistory:
    """One passage, by its number in the record or by the id that a trace shows.

    Raises:
        UsageError: there is no such passage, or several texts have had that id.
        StorageError: the record cannot be read.
    """
    from offline_judge.retrieval.evidence.history import passage_numbers, read_history

    remedy = "`offline-judge evidence search QUERY` shows the numbers of passages."
    if _file(settings).exists():
        with closing(open_record(settings)) as record:
            numbers = passage_numbers(record, id)
            if len(numbers) > 1:
                listed = ", ".join(map(str, numbers[:_SHOWN]))
                more = ", ..." if len(numbers) > _SHOWN else ""
                raise UsageError(
                    f"{len(numbers)} passages have had the id `{id}`.",
                    remedy=f"Name one by its number: {listed}{more}.",
                )
            found = read_history(record, numbers[0]) if numbers else None
            if found is not None:
                return found
    raise UsageError(f"The record has no passage `{id}`.", remedy=remedy)


def prune_record(
    settings: Settings, *, older_than: int | None, source: str, dry_run: bool, tell: Tell
) -> Pruned:
    """Delete what is old, or comes from a source, with its vectors; Chroma follows.

    Raises:
        UsageError: no limit is given, one is out of range, or there is no such source.
        StorageError: the record cannot be written; then nothing is deleted.
    """
    from offline_judge.retrieval.evidence.prune import prune

    if older_than is None and not source:
        raise UsageError(
            "Without a limit everything would go.",
            remedy="Give --older-than DAYS (0 for everything), --source NAME, or both.",
        )
    if older_than is not None and older_than < 0:
        raise UsageError(f"An age is at least 0 days, not {older_than}.")
    if not _file(settings).exists():
        return Pruned(dry_run, 0, 0, 0, 0, 0)
    with closing(open_record(settings)) as record:
        if source and record.database.one("SELECT count(*) FROM places"):
            _check_source(record, source)
        pruned = prune(record, older_than=older_than, source=source, dry_run=dry_run)
        if pruned.vectors and not dry_run:
            _follow(record, settings, tell)
    return pruned


def rebuild_index(
    settings: Settings, tell: Tell, progress: Callable[[int, int], None]
) -> RecordState:
    """Fill Chroma anew from the vectors in SQLite; nothing is embedded.

    Args:
        settings: Where the record is.
        tell: Takes sentences for people.
        progress: Told how many vectors of how many are in it.

    Raises:
        MissingDependencyError: Chroma is not installed.
        UsageError: another process has Chroma open.
        StorageError: the record cannot be read, or Chroma not be filled.
    """
    from offline_judge.retrieval.evidence.lock import IndexLock

    if importlib.util.find_spec("chromadb") is None:
        raise MissingDependencyError(
            "Chroma is not installed, so there is no index to build; recorded vectors are "
            "searched one by one.",
            remedy='pip install "offline-llm-judge[evidence]"',
        )
    if _file(settings).exists():
        with closing(open_record(settings)) as record:
            for space in _spaces(record):
                index = _index(record, space, settings, tell, progress)
                if not index.open():
                    holder = IndexLock(settings.evidence_path / _CHROMA / "lock").holder()
                    raise UsageError(
                        f"Process {holder or 'of another user'} has the vector index open.",
                        remedy="Try again when it is done.",
                    )
                with closing(index):
                    index.clear()
                    index.fill()
    return record_state(settings)


def _follow(record: Record, settings: Settings, tell: Tell) -> None:
    """Take deleted vectors out of Chroma now; where that fails it does so when next opened."""
    later = "The vector index follows when it is next opened."
    for space in _spaces(record, empty=True):
        index = _index(record, space, settings, lambda _: None)
        if not index.folder.exists():
            continue
        with closing(index):
            try:
                if not index.open():
                    tell(later)
            except StorageError as error:
                tell(f"{later} ({error.message})")


def _spaces(record: Record, *, empty: bool = False) -> list[Space]:
    """The spaces that have vectors, or ever had."""
    from offline_judge.retrieval.evidence.vectors import Space

    having = "" if empty else "WHERE EXISTS (SELECT 1 FROM vectors WHERE space = spaces.id)"
    rows = record.database.rows(f"SELECT embedder, dimension FROM spaces {having} ORDER BY id")
    return [Space(*row) for row in rows]


def _index(
    record: Record,
    space: Space,
    settings: Settings,
    tell: Tell,
    progress: Callable[[int, int], None] = lambda _done, _of: None,
) -> ChromaIndex:
    from offline_judge.retrieval.evidence.chroma import ChromaIndex, Events
    from offline_judge.retrieval.evidence.vectors import VectorTable

    events = Events(told=tell, progress=progress)
    return ChromaIndex(VectorTable(record, space), settings.evidence_path / _CHROMA, events)


def _no_embedder(settings: Settings) -> str:
    """Why there is nothing to embed with, as far as that is seen without opening it."""
    if settings.embedder == NO_EMBEDDER:
        return "The setting `embedder` is `none`."
    if settings.embedder == HASHING:
        return ""
    try:
        card = model_card(settings.embedder, settings)
        model_store(settings).path(card)
    except (MissingError, WeightsError) as error:
        return str(error)
    if card.embedding is not None and card.embedding.format == "onnx":
        for package in ("onnxruntime", "tokenizers"):
            if importlib.util.find_spec(package) is None:
                return (
                    f"`{card.name}` runs on {package}, which is not installed: "
                    'pip install "offline-llm-judge[evidence]"'
                )
    return ""


def _vector_state(record: Record, space: Space, settings: Settings) -> VectorState:
    from offline_judge.retrieval.evidence.vectors import VectorTable

    table = VectorTable(record, space)
    index = _index(record, space, settings, lambda _: None)
    fault = index.fault()
    return VectorState(
        embedder=space.embedder,
        dimension=space.dimension,
        vectors=table.count(),
        indexed=table.count_until(index.holds()),
        index_size=_size(index.folder),
        problem=f"it is damaged ({fault}), and is built anew when it is next needed"
        if fault
        else "",
    )


def _check_source(record: Record, source: str) -> None:
    rows = record.database.rows("SELECT DISTINCT source FROM documents ORDER BY source")
    known = [row[0] for row in rows]
    if source in known:
        return
    close = get_close_matches(source, known, n=1)
    hint = f"Did you mean `{close[0]}`? " if close else ""
    more = ", ..." if len(known) > _SHOWN else ""
    raise UsageError(
        f"The record has nothing from `{source}`.",
        remedy=f"{hint}Known: {', '.join(known[:_SHOWN])}{more}.",
    )


def _check_dates(filters: Filters) -> None:
    for name, value in (("--from", filters.date_from), ("--to", filters.date_to)):
        if value and not _is_date(value):
            raise UsageError(
                f"`{value}` is no date.", where=name, remedy="YYYY, YYYY-MM or YYYY-MM-DD"
            )
    first, last = filters.days
    if first > last:
        raise UsageError(f"No day is from {filters.date_from} to {filters.date_to}.")


def _is_date(value: str) -> bool:
    parts = value.split("-")
    if [len(part) for part in parts] not in ([4], [4, 2], [4, 2, 2]):
        return False
    with suppress(ValueError):
        date.fromisoformat("-".join([*parts, "01", "01"][:3]))
        return value.isascii()
    return False


def _size(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        with suppress(OSError):
            total += path.stat().st_size if path.is_file() else 0
    return total


def _file(settings: Settings) -> Path:
    from offline_judge.retrieval.evidence.record import FILE

    return settings.evidence_path / FILE
