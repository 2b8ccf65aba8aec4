from __future__ import annotations

from collections.abc import Iterable

from offline_judge.cli.steps import Steps
from offline_judge.domain.events import (
    AnyEvent,
    CallFinished,
    RoundFinished,
    SampleFinished,
    SampleStarted,
    SearchFinished,
    UnknownEvent,
    parse_event,
)
from offline_judge.domain.evidence import EvidenceState, Passage, SearchHit
from offline_judge.domain.judgment import Judgment, Outcome
from offline_judge.domain.message import Usage
from offline_judge.domain.sample import Sample

PASSAGE = Passage(
    id="kz#3",
    document_id="kz",
    title="Kazakhstan",
    text="The capital is Astana.",
    start=10,
    end=32,
    source="corpus:factbook",
)
CALL = CallFinished(
    stage="verdict",
    round=2,
    attempt=1,
    template="verdict",
    template_hash="f" * 64,
    values={
        "question": "Which?",
        "notes": ["a", "b"],
        "response": {"untrusted": "response", "text": "Astana", "tag": "lkmg"},
    },
    prompt_hash="0" * 64,
    masses={"true": 0.2, "false": 0.7},
    outside=0.1,
    usage=Usage(prompt_tokens=812, cached_tokens=640, completion_tokens=1),
)
SUMMARY = CallFinished(
    stage="relevance.summary",
    round=1,
    template="relevance.summary",
    template_hash="e" * 64,
    prompt_hash="1" * 64,
    text="Astana.",
    usage=Usage(prompt_tokens=10),
)
ROUND = RoundFinished(
    round=1,
    query="capital of Kazakhstan",
    evidence={"E1": PASSAGE.id},
    summary="Astana.",
    stance="contradicts",
    stance_masses={"supports": 0.1, "contradicts": 0.9},
    missing="since when",
)
SEARCH = SearchFinished(
    round=1,
    query="capital of Kazakhstan",
    provider="corpus",
    hits=(SearchHit(rank=1, score=2.0, passage=PASSAGE),),
)
VERDICT = SampleFinished(
    outcome=Outcome.SCORED,
    judgment=Judgment(
        verdict=False,
        probability=0.22,
        outside=0.1,
        rationale="It is Astana.",
        citations=("E1",),
        dropped_citations=("zz",),
        evidence_state=EvidenceState.FOUND,
    ),
)


def told(steps: Steps, events: Iterable[AnyEvent]) -> str:
    return "\n".join(line.text for event in events for line in steps.feed(event))


def test_a_round_is_told_in_the_order_it_happened() -> None:
    text = told(Steps(), [SEARCH, SUMMARY, ROUND])

    expected = [
        "search for",
        "[kz#3] Kazakhstan",
        "summary: Astana.",
        "stance: contradicts",
        "since",
    ]
    places = [text.index(part) for part in expected]
    assert places == sorted(places)
    assert "(supports 0.10, contradicts 0.90)" in text


def test_a_summary_is_told_once() -> None:
    assert told(Steps(), [SEARCH, SUMMARY, ROUND]).count("summary:") == 1


def test_a_round_whose_search_was_shared_is_told_from_the_round_alone() -> None:
    text = told(Steps(), [ROUND])

    assert "search for “capital of Kazakhstan”" in text
    assert "[E1]" in text
    assert "summary: Astana." in text


def test_a_citation_says_where_its_passage_comes_from() -> None:
    text = told(Steps(), [SEARCH, ROUND, VERDICT])

    assert "cited: [E1] Kazakhstan (corpus:factbook, document kz, characters 10-32)" in text
    assert "“The capital is Astana.”" in text


def test_a_verdict_comes_with_probability_rationale_and_dropped_citations() -> None:
    text = told(Steps(), [VERDICT])

    assert (
        "verdict: false (probability of true 0.22, 0.10 on neither label; evidence: found)" in text
    )
    assert "because: It is Astana." in text
    assert "dropped: zz" in text


def test_a_failed_search_is_not_told_as_nothing_found() -> None:
    text = told(Steps(), [SearchFinished(query="q", provider="corpus", error="index is damaged")])

    assert "the search failed: index is damaged" in text
    assert "nothing found" not in text


def test_an_unscored_sample_says_why() -> None:
    event = SampleFinished(outcome=Outcome.UNSCORED, reason="overflow", detail="5000 of 4096")

    assert told(Steps(), [event]) == "unscored - overflow: 5000 of 4096"


def test_calls_tell_their_tokens() -> None:
    text = told(Steps(calls=True), [CALL])

    assert "verdict, round 2, attempt 2: 812 prompt tokens, 172 read anew, 1 written" in text


def test_prompts_tell_values_and_raw_answers() -> None:
    text = told(Steps(prompts=True), [CALL, SUMMARY])

    assert "question = Which?" in text
    assert "notes = \n      - a\n      - b" in text
    assert "response (response) = Astana" in text
    assert "read: (true 0.20, false 0.70, neither 0.10)" in text
    assert "answer = Astana." in text


def test_values_stay_out_without_prompts() -> None:
    assert "Which?" not in told(Steps(calls=True), [CALL])


def test_the_sample_itself_comes_first() -> None:
    sample = Sample(id="a", question="Q\nmore", response="R", reference=("x", "y"), label=True)

    text = told(Steps(), [SampleStarted(sample=sample)])

    assert text.splitlines()[0] == "question  Q"
    assert "reference x | y" in text
    assert "label     true" in text


def test_events_of_a_newer_program_are_passed_over() -> None:
    assert told(Steps(), [UnknownEvent(event="novelty")]) == ""


def test_each_id_of_the_notes_is_told_with_its_own_passage() -> None:
    other = PASSAGE.model_copy(update={"id": "kz#4", "title": "Astana"})
    hits = tuple(SearchHit(rank=i + 1, score=1, passage=p) for i, p in enumerate((PASSAGE, other)))
    second = SearchFinished(round=2, query="more", provider="corpus", hits=hits, reused=True)
    later = ROUND.model_copy(update={"round": 2, "evidence": {"E2": "kz#4"}})

    text = told(Steps(), [SEARCH, ROUND, second, later])

    assert "into the notes: [E1] Kazakhstan" in text
    assert "into the notes: [E2] Astana" in text
    assert "searched before in this run" in text


def test_a_reason_that_repeats_the_outcome_is_left_out_of_its_steps() -> None:
    event = SampleFinished(outcome=Outcome.CANCELLED, reason="cancelled", detail="given up")
    assert "cancelled - given up" in told(Steps(), [event])


def test_an_event_of_another_shape_is_told_and_one_of_another_kind_is_not() -> None:
    raw = {"event": "warning", "note": "a field that this program does not know"}
    assert "left out: `warning`" in told(Steps(), [parse_event(raw)])


def test_how_likely_a_passage_is_to_say_the_answer_is_told() -> None:
    rated = ROUND.model_copy(update={"relevance": {"E1": 0.75}})

    assert "[E1] Kazakhstan (says what the answer is: 0.75)" in told(Steps(), [SEARCH, rated])
