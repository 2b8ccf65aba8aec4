"""Traces as trees and evidence: what is told of age, order, names, and of a passage's document."""

from __future__ import annotations

from offline_judge_tui.traces.around import around, shared_words
from offline_judge_tui.traces.build import build_trace
from offline_judge_tui.traces.model import Evidence
from offline_judge_tui.traces.words import LINE, one_line

from offline_judge.domain.events import (
    AnyEvent,
    CallFinished,
    RoundFinished,
    SampleFinished,
    SampleStarted,
    SearchFinished,
)
from offline_judge.domain.evidence import Passage, SearchHit
from offline_judge.domain.judgment import Judgment, Outcome
from offline_judge.domain.message import Usage
from offline_judge.domain.sample import Sample

DOCUMENT = "The bridge was built of iron. It opened in 1911. Ann Lee drew it."


def passage(start: int, end: int, name: str = "") -> Passage:
    return Passage(
        id=name or f"d:{start}",
        document_id="d",
        title="Bridge",
        text=DOCUMENT[start:end],
        start=start,
        end=end,
        source="corpus:x",
    )


def found(start: int, end: int) -> Evidence:
    place = passage(start, end)
    return Evidence(place.id, "", place, 1, 1, 1.0, "bridge", "corpus", "2026-01-04T10:00:00Z")


def searched(round: int, *passages: Passage, found_at: str = "", cached: bool = False) -> AnyEvent:
    hits = tuple(
        SearchHit(rank=n, score=1.0, passage=p, found_at=found_at, cached=cached)
        for n, p in enumerate(passages, 1)
    )
    time = "2026-01-04T10:00:00Z"
    return SearchFinished(round=round, query="bridge", provider="corpus", hits=hits, time=time)


def read(name: str, shown: str) -> AnyEvent:
    return CallFinished(
        stage="relevance",
        round=1,
        template="sage/relevance",
        template_hash="0",
        values={"evidence": {"untrusted": "evidence", "text": f"[{name}] Bridge: {shown}"}},
        prompt_hash="0",
        usage=Usage(prompt_tokens=1),
    )


START = SampleStarted(sample_id="s", sample=Sample(id="s", question="When?", response="In 1911."))


def test_a_passage_belongs_to_the_round_that_noted_it() -> None:
    first, second = passage(0, 29, "p"), passage(30, 48, "q")
    events = (
        START,
        searched(1, first, second),
        RoundFinished(round=1, query="bridge", evidence={"E1": "p"}, relevance={"E1": 0.7}),
        searched(2, second, first),
        RoundFinished(round=2, query="bridge", evidence={"E2": "q"}),
        SampleFinished(
            outcome=Outcome.SCORED,
            judgment=Judgment(verdict=True, probability=0.8, citations=("E2",)),
        ),
    )
    trace = build_trace(events)
    one, two = trace.evidence.values()
    assert (one.name, one.round, one.rank, one.relevance, one.cited) == ("E1", 1, 1, 0.7, False)
    assert (two.name, two.round, two.rank, two.relevance, two.cited) == ("E2", 2, 1, None, True)
    (citation,) = trace.citations()
    assert citation.evidence == two.key
    assert trace.citing(one.key) is None


def test_what_the_judge_was_shown_is_told_only_where_the_trace_tells() -> None:
    cut, other = passage(0, 48, "p"), passage(30, 65, "q")
    events = (
        START,
        searched(1, cut, other),
        read("E1", DOCUMENT[:29]),
        read("E2", "other words than the passage has"),
        RoundFinished(round=1, query="bridge", evidence={"E1": "p", "E2": "q"}),
    )
    one, two = build_trace(events).evidence.values()
    assert one.shown == 29
    assert two.shown is None


def test_a_search_answered_from_the_record_tells_how_old_its_answer_is() -> None:
    events = (START, searched(1, passage(0, 29), found_at="2026-01-01T10:00:00Z"))
    search = next(node for node in build_trace(events).root.walk() if node.kind == "search")
    told = "".join(piece.text for piece in search.pieces)
    assert told.endswith("from the record, found 3 days earlier")


def test_passages_of_one_document_surround_each_other_and_gaps_are_told() -> None:
    middle, start, end = found(30, 48), found(0, 29), found(52, 65)
    beside = around(middle, [middle, start, end])
    assert beside.before == f"{DOCUMENT[:29]}\n[… 1 characters that the trace does not hold …]\n"
    assert beside.behind == f"\n[… 4 characters that the trace does not hold …]\n{DOCUMENT[52:65]}"


def test_overlapping_passages_are_joined_once() -> None:
    middle = found(20, 50)
    beside = around(middle, [found(0, 25), middle, found(40, 65), found(45, 60)])
    assert beside.before + middle.passage.text + beside.behind == DOCUMENT


def test_words_of_the_response_are_found_whatever_their_case() -> None:
    spans = shared_words("It OPENED in 1911, a bit late", DOCUMENT)
    assert [DOCUMENT[start:end] for start, end in spans] == ["opened", "1911"]


def test_a_label_is_one_line_of_the_beginning_of_a_text() -> None:
    assert one_line("a\n b") == "a b"
    assert one_line("word " * 1000) == f"{('word ' * 1000)[: LINE - 1].rstrip()}…"
    assert one_line(" " * 10_000 + "late") == "…"
