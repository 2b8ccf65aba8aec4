"""`evidence`: the record of what searches found."""

from __future__ import annotations

import time

import click

from offline_judge.cli import output
from offline_judge.cli.diagnostics import Diagnostics
from offline_judge.cli.lazy import LazyCommand, LazyGroup
from offline_judge.cli.session import Session, output_options, setting_option
from offline_judge.domain.ages import ago, day
from offline_judge.domain.numbers import count, size
from offline_judge.domain.record import (
    FoundFor,
    FoundPlace,
    PassageHistory,
    Pruned,
    RecordedPassage,
    RecordState,
    VectorState,
)
from offline_judge.domain.visible import shorten

PROGRESS_INTERVAL_S = 5.0
SHOWN_SOURCES = 5
SHOWN_QUERIES = 20
OPENING = 76  # characters of a passage in a list

_LAZY = {
    name: LazyCommand(f"offline_judge.cli.{module}", line)
    for name, module, line in (
        ("stats", "evidence:stats", "How much is recorded, how far its vectors are."),
        ("search", "evidence:search", "Search in what was found so far."),
        ("show", "evidence:show", "Where, when and for what a passage was found."),
        ("prune", "evidence:prune", "Delete what is old or from a source."),
        ("rebuild", "evidence:rebuild", "Build the index of vectors anew."),
        ("add", "evidence_change:add", "Judge a sample again with a passage of yours."),
        ("drop", "evidence_change:drop", "Judge a sample again without a passage."),
    )
}


@click.group(cls=LazyGroup, lazy=_LAZY)
def evidence() -> None:
    """What searches have found so far: kept, searched, and deleted on this machine.

    Each search of a run is recorded; the same search is then answered out of the record.
    """


@click.command("stats")
@output_options
@click.pass_obj
def stats(session: Session) -> None:
    """Show how much is recorded, and how far its vectors are."""
    from offline_judge import api

    _report(session, api.evidence_stats(session.settings()))


@click.command("search")
@click.argument("query")
@click.option("--source", "sources", multiple=True, metavar="NAME", help="Such as corpus:NAME.")
@click.option("--from", "date_from", default="", metavar="DATE", help="Documents of it or later.")
@click.option("--to", "date_to", default="", metavar="DATE", help="Documents of it or earlier.")
@click.option("--limit", type=click.IntRange(min=1), default=10, show_default=True, metavar="N")
@setting_option("--embedder", metavar="NAME", help="Model card of the embedder, or `none`.")
@output_options
@click.pass_obj
def search(
    session: Session, query: str, sources: tuple[str, ...], date_from: str, date_to: str, limit: int
) -> None:
    """Search the record for QUERY, by meaning and by words.

    DATE is YYYY, YYYY-MM or YYYY-MM-DD; with one, documents without a date are left out.
    """
    from offline_judge import api

    asked = api.EvidenceQuery(query, sources, date_from, date_to, limit)
    found = api.evidence_search(asked, session.settings(), session.diagnostics.warn)
    if session.json:
        output.rows(found)
        return
    if not found:
        session.diagnostics.note("Nothing is recorded that fits.")
        return
    output.text("number  similarity", "bold")
    for hit in found:
        _tell_hit(hit)
    session.diagnostics.hint(f"One of them whole: offline-judge evidence show {found[0].number}")


@click.command("show")
@click.argument("id", metavar="ID")
@output_options
@click.pass_obj
def show(session: Session, id: str) -> None:
    """Show passage ID, and where, when and for which queries it was found.

    ID is its number, which `evidence search` tells, or its id in the trace of a run.
    """
    from offline_judge import api

    history = api.evidence_show(id, session.settings())
    if session.json:
        output.document(history)
    else:
        _tell_history(history)


@click.command("prune")
@click.option("--older-than", type=click.IntRange(min=0), metavar="DAYS", help="Found before that.")
@click.option("--source", default="", metavar="NAME", help="From there, such as corpus:NAME.")
@click.option("--dry-run", is_flag=True, help="Only say what would go.")
@output_options
@click.pass_obj
def prune(session: Session, older_than: int | None, source: str, dry_run: bool) -> None:
    """Delete recorded passages that are old, or come from a source, or both.

    Their vectors go with them, and every recorded answer that names one. A passage that was found
    again since is not old, and one that another source has too stays. Runs keep their traces.
    """
    from offline_judge import api

    pruned = api.evidence_prune(
        session.settings(),
        older_than=older_than,
        source=source,
        dry_run=dry_run,
        tell=session.diagnostics.note,
    )
    if session.json:
        output.document(pruned)
    else:
        output.pairs(_pruned_pairs(pruned))
    if dry_run:
        session.diagnostics.hint("Nothing was deleted; without --dry-run it is.")


@click.command("rebuild")
@output_options
@click.pass_obj
def rebuild(session: Session) -> None:
    """Build the index of vectors (Chroma) anew from the recorded vectors.

    Nothing is embedded again and nothing of record is touched.
    """
    from offline_judge import api

    told = _Told(session.diagnostics)
    state = api.evidence_rebuild(
        session.settings(), tell=session.diagnostics.note, progress=told.progress
    )
    if session.json:
        output.document(state)
        return
    if not any(vectors.vectors for vectors in state.vectors):
        session.diagnostics.note("No passage has a vector yet, so there is nothing to index.")
    for vectors in state.vectors:
        output.text(f"{vectors.embedder}  {_indexed(vectors)}")


def _report(session: Session, state: RecordState) -> None:
    if session.json:
        output.document(state)
        return
    output.pairs(_state_pairs(state))
    if not state.passages:
        session.diagnostics.hint("Searches of runs fill it: offline-judge run sage --data FILE")
    if state.problem:
        session.diagnostics.note(f"No passage gets a vector: {state.problem}")
    elif all(one.vectors < state.passages for one in state.vectors) and state.passages:
        session.diagnostics.hint("The next run embeds what has no vector yet.")


def _state_pairs(state: RecordState) -> list[tuple[str, str]]:
    pairs = [
        ("record", f"{state.path} ({size(state.size)})"),
        ("queries", _queries(state)),
        ("documents", f"{state.documents:,}"),
        ("passages", f"{state.passages:,}"),
    ]
    if state.sources:
        named = [f"{name} ({n:,})" for name, n in state.sources.items()]
        more = len(named) - SHOWN_SOURCES
        rest = [f"and {more:,} more"] if more > 0 else []
        pairs.append(("sources", "\n".join([*named[:SHOWN_SOURCES], *rest])))
    vectors = [
        f"{one.embedder}: {one.vectors:,} of {state.passages:,} passages" for one in state.vectors
    ]
    pairs.append(("vectors", "\n".join(vectors) or "none"))
    pairs.append(("index", _chroma(state)))
    held = f"process {state.holder} has the index open" if state.holder else "free"
    return [*pairs, ("lock", held)]


def _queries(state: RecordState) -> str:
    if not state.queries:
        return "0"
    first, last = day(state.first), day(state.last)
    when = first if first == last else f"{first} to {last}"
    return f"{state.queries:,} with {count(state.results, 'result')}, {when} UTC"


def _chroma(state: RecordState) -> str:
    if not state.chroma:
        return 'no Chroma; it comes with pip install "offline-llm-judge[evidence]"'
    name = f"Chroma {state.chroma}"
    held = [one for one in state.vectors if one.index_size or one.problem]
    if not held:
        return f"{name}, nothing in it yet; so few vectors are searched one by one"
    if len(state.vectors) == 1:
        return f"{name}, {_indexed(held[0])}"
    return "\n".join([name, *(f"{one.embedder}: {_indexed(one)}" for one in held)])


def _indexed(vectors: VectorState) -> str:
    if vectors.problem:
        return vectors.problem
    held = f"{vectors.indexed:,} of {count(vectors.vectors, 'vector')} in the index"
    return f"{held}, {size(vectors.index_size)}"


def _tell_hit(hit: RecordedPassage) -> None:
    dated = f" of {hit.date}" if hit.date else ""
    where = f"({hit.source}{dated}, found {ago(hit.found_at)})"
    output.text(f"{hit.number:>6}  {hit.similarity:>10.2f}  {shorten(hit.title, 60)} {where}")
    output.text(f"{'':20}{shorten(hit.text, OPENING)}", "dim")


def _tell_history(history: PassageHistory) -> None:
    known = len(history.queries) - SHOWN_QUERIES
    queries = [_query(found) for found in history.queries[:SHOWN_QUERIES]]
    if known > 0:
        queries.append(f"and {known:,} more")
    output.pairs(
        [
            ("passage", f"{history.number}"),
            ("title", history.title or "-"),
            ("text", history.text),
            ("first found", f"{day(history.first_found_at)} UTC"),
            ("found in", "\n".join(map(_place, history.places)) or "-"),
            ("found for", "\n".join(queries) or "no query that is still recorded"),
            ("vectors", "\n".join(history.embedders) or "none yet"),
        ]
    )


def _place(place: FoundPlace) -> str:
    dated = f" of {place.date}" if place.date else ""
    address = f", {place.url}" if place.url not in ("", place.source) else ""
    return (
        f"{place.source}: document {place.document}{dated}, characters {place.start}-{place.end}, "
        f"{ago(place.found_at)}\n  as [{place.id}]{address}"
    )


def _query(found: FoundFor) -> str:
    locale = f", {found.locale}" if found.locale else ""
    asked = shorten(found.query, 100)
    return f"“{asked}” ({found.provider}{locale}), rank {found.rank}, {ago(found.found_at)}"


def _pruned_pairs(pruned: Pruned) -> list[tuple[str, str]]:
    word = "would go" if pruned.dry_run else "deleted"
    pairs = [
        (
            word,
            f"{count(pruned.passages, 'passage')} with {count(pruned.vectors, 'vector')}, "
            f"{count(pruned.documents, 'document')}, "
            f"{count(pruned.queries, 'recorded answer')}",
        ),
        ("left", count(pruned.left, "passage")),
    ]
    return pairs if pruned.dry_run else [*pairs, ("freed", size(pruned.freed))]


class _Told:
    """Tells how far the index is, every few seconds."""

    def __init__(self, diagnostics: Diagnostics) -> None:
        self._diagnostics = diagnostics
        self._next = time.monotonic() + PROGRESS_INTERVAL_S

    def progress(self, done: int, of: int) -> None:
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + PROGRESS_INTERVAL_S
            self._diagnostics.note(f"{done:,} of {count(of, 'vector')} in the index")
