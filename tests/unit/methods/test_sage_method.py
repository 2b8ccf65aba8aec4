"""SAGE: what each role sees, what the memory keeps, and what becomes of outages and repeats."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import pytest
from fake_judge import FakeJudge, FakeSearch, ListTrace
from hypothesis import given
from hypothesis import strategies as st
from sage_parts import SAMPLE, Script, flat, judged, masses

from offline_judge.domain.events import RoundFinished, SearchFinished
from offline_judge.domain.evidence import EvidenceState
from offline_judge.domain.sample import Sample
from offline_judge.errors import UnscoredError, UsageError
from offline_judge.methods.sage.method import Sage
from offline_judge.protocols import MethodContext, Untrusted, Values


async def test_the_first_round_searches_the_question_itself() -> None:
    judge = FakeJudge(Script(), masses)
    judgment, trace = await judged(judge, rewrite_first=False)
    rounds = [event for event in trace.events if isinstance(event, RoundFinished)]
    assert [r.query for r in rounds] == ["Which fact?", "query 1", "query 2"]
    assert judgment.distinct_queries == 3
    assert not any(r.fallback for r in rounds)


async def test_a_written_query_that_repeats_the_question_is_asked_for_again() -> None:
    def script(template: str, values: Values) -> str:
        if template == "query.again":
            assert values["forbidden"] == ("Which fact?",)
            return "another one; which FACT"
        return "which fact" if template == "query" else Script()(template, values)

    _, trace = await judged(FakeJudge(script, masses), rewrite_first=False, rounds=2)
    rounds = [event for event in trace.events if isinstance(event, RoundFinished)]
    assert [r.query for r in rounds] == ["Which fact?", "another one"]


async def test_one_round_writes_no_query() -> None:
    judge = FakeJudge(Script(), masses)
    await judged(judge, rewrite_first=False, rounds=1)
    assert not [call for call in judge.calls if call.template.startswith("query")]
    assert "query" not in Sage.from_options({"rounds": 1}).stages


async def test_the_verdict_is_the_share_of_the_two_labels() -> None:
    judgment, _ = await judged(FakeJudge(Script(), masses))
    assert judgment.verdict
    assert judgment.probability == pytest.approx(0.75)
    assert judgment.outside == pytest.approx(0.2)


async def test_every_round_leaves_its_queries_evidence_stance_and_gap_in_the_trace() -> None:
    _, trace = await judged(FakeJudge(Script(), masses))
    rounds = [event for event in trace.events if isinstance(event, RoundFinished)]
    assert [r.query for r in rounds] == ["query 1", "query 2", "query 3"]
    assert [tuple(r.evidence) for r in rounds] == [
        ("E1", "E2", "E3"),
        ("E4", "E5", "E6"),
        ("E7", "E8", "E9"),
    ]
    assert rounds[0].relevance == pytest.approx({"E1": 0.1, "E2": 0.9, "E3": 0.1})
    assert [r.summary for r in rounds] == ["It is fact 2.", "", ""]
    assert [r.stance for r in rounds] == ["supports", "inconclusive", "inconclusive"]
    assert [r.probability for r in rounds] == pytest.approx([0.75] * 3)
    assert [r.missing for r in rounds] == ["the year", "the year", ""]


@given(st.text(min_size=1), st.text(min_size=1))
def test_a_response_reaches_no_query_but_through_the_reflections(one: str, other: str) -> None:
    """Two responses whose reflections agree lead to the same calls of the query role."""
    import asyncio

    asked = []
    for response in (one, other):
        judge = FakeJudge(Script(), masses)
        sample = Sample(id="s", question="Which fact?", response=f"<{response}>")
        asyncio.run(judged(judge, sample=sample))
        calls = [call for call in judge.calls if call.template.startswith("query")]
        asked.append([(call.template, call.values) for call in calls])
    assert asked[0] == asked[1]


async def test_what_is_missing_reaches_the_next_query() -> None:
    judge = FakeJudge(Script(), masses)
    await judged(judge)
    assert "the year" in flat(judge.asked("query")[1].values)


async def test_notes_only_grow() -> None:
    judge = FakeJudge(Script(), masses)
    await judged(judge)
    notes = [call.values["notes"] for call in judge.asked("query")]
    assert [len(n) for n in notes] == [0, 1, 2]
    assert notes[2][:1] == notes[1]


async def test_a_passage_is_taken_up_once_even_if_every_query_finds_it_again() -> None:
    judge = FakeJudge(Script(), masses)
    await judged(judge)
    read = " ".join(flat(call.values) for call in judge.asked("relevance"))
    assert all(read.count(f"Fact number {n}.") == 1 for n in range(1, 10))


async def test_a_repeated_query_is_asked_again_with_the_earlier_ones_forbidden() -> None:
    judge = FakeJudge(Script(repeat=True), masses)
    search = FakeSearch()
    judgment, _ = await judged(judge, search)
    again = judge.asked("query.again")
    assert [call.values["forbidden"] for call in again] == [("same query",), ("same query",)]
    assert all(call.variant > 0 for call in again)
    assert judgment.distinct_queries == 1
    assert judgment.fallback_rounds == 2


async def test_a_fall_back_round_takes_the_next_ranks() -> None:
    judge = FakeJudge(Script(repeat=True), masses)
    await judged(judge)
    shown = [flat(call.values) for call in judge.asked("relevance")]
    assert ["Fact number 4." in text for text in shown[3:6]] == [True, False, False]


async def test_the_response_is_read_against_the_passage_that_says_the_answer() -> None:
    judge = FakeJudge(Script(), masses)
    await judged(judge)
    shown = [call.values["evidence"] for call in judge.asked("reflection")]
    assert shown[0] == Untrusted("[E2] T2: Fact number 2.", "evidence")
    assert sum(one == shown[0] for one in shown) == 1


async def test_passages_of_equal_relevance_are_all_read() -> None:
    def undecided(template: str, values: Values) -> dict[str, float]:
        flat = {"relevant": 0.5, "irrelevant": 0.5}
        return flat if template == "relevance" else masses(template, values)

    judge = FakeJudge(Script(), undecided)
    await judged(judge, rounds=1)
    assert len(judge.asked("reflection")) == 3


async def test_a_passage_of_a_later_round_that_says_the_answer_decides() -> None:
    def late(template: str, values: Values) -> dict[str, float]:
        about = "number 8." in flat(dict(values))
        if template == "relevance":
            return {"relevant": 0.95, "irrelevant": 0.05} if about else {"irrelevant": 0.9}
        return {"false": 0.9, "true": 0.1} if about else {"true": 0.9, "false": 0.1}

    judgment, _ = await judged(FakeJudge(Script(cites=("E8",)), late))
    assert not judgment.verdict
    assert judgment.citations == ("E8",)


async def test_prompts_about_one_passage_begin_alike_and_share_a_slot() -> None:
    judge = FakeJudge(Script(), masses)
    await judged(judge, rounds=1)
    place = {flat({"e": c.values["evidence"]}): c.at.place for c in judge.asked("relevance")}
    assert len(set(place.values())) == 3
    assert set(place.values()) <= set(Sage.from_options({"rounds": 1}).stages)
    assert judge.asked("reflection")
    for call in judge.asked("reflection"):
        assert place[flat({"e": call.values["evidence"]})] == call.at.place


def test_the_shared_beginning_of_prompts_is_the_same_text() -> None:
    prompts = files("offline_judge.methods.sage") / "prompts"

    def read(name: str) -> str:
        return (prompts / f"{name}.jinja").read_text("utf-8")

    assert read("relevance.system") == read("reflection.system")
    shared = read("relevance.user").partition("Does the evidence")[0].rstrip("\n")
    assert "{{ question }}" in shared
    assert read("reflection.user").startswith(shared)


async def test_without_refinement_the_question_is_searched_and_no_query_written() -> None:
    judge, search = FakeJudge(Script(), masses), FakeSearch()
    _, trace = await judged(judge, search, refine=False)
    assert set(search.queries) == {SAMPLE.question}
    assert not judge.asked("query")
    rounds = [event for event in trace.events if isinstance(event, RoundFinished)]
    assert [tuple(r.evidence) for r in rounds][1] == ("E4", "E5", "E6")


async def test_a_single_pass_searches_once_and_writes_nothing_but_the_rationale() -> None:
    judge, search = FakeJudge(Script(), masses), FakeSearch()
    judgment, _ = await judged(judge, search, single_pass=True)
    assert search.queries == [SAMPLE.question]
    assert {call.template for call in judge.calls} == {
        "relevance",
        "reflection",
        "reflection.rationale",
    }
    assert judgment.searches == 1


async def test_a_round_that_settles_the_response_is_the_last_if_wished() -> None:
    search = FakeSearch()
    await judged(FakeJudge(Script(), masses), search, sufficiency=True)
    assert len(search.queries) == 1


async def test_rounds_go_on_while_no_passage_says_the_answer() -> None:
    def silent(template: str, values: Values) -> dict[str, float]:
        given = {"irrelevant": 0.9, "relevant": 0.1}
        return given if template == "relevance" else masses(template, values)

    search = FakeSearch()
    await judged(FakeJudge(Script(), silent), search, sufficiency=True)
    assert len(search.queries) == 3


async def test_citations_of_unknown_evidence_are_dropped_and_counted() -> None:
    judgment, _ = await judged(FakeJudge(Script(cites=("E2", "E77", "[E2]")), masses))
    assert judgment.citations == ("E2",)
    assert judgment.dropped_citations == ("E77",)


async def test_an_outage_is_told_apart_from_finding_nothing() -> None:
    judge = FakeJudge(Script(), masses)
    judgment, trace = await judged(judge, FakeSearch(down=True))
    assert judgment.evidence_state is EvidenceState.FAILED
    searches = [event for event in trace.events if isinstance(event, SearchFinished)]
    assert all(event.error and not event.hits for event in searches)

    judgment, _ = await judged(FakeJudge(Script(), masses), FakeSearch(empty=True))
    assert judgment.evidence_state is EvidenceState.NONE_FOUND


async def test_without_evidence_the_judge_falls_back_on_what_it_knows() -> None:
    def knows_better(template: str, values: Values) -> dict[str, float]:
        return {"false": 0.8, "true": 0.2} if template == "knowledge" else {"true": 1.0}

    judgment, _ = await judged(FakeJudge(Script(), knows_better), FakeSearch(empty=True))
    assert judgment.probability == pytest.approx(0.2)


async def test_evidence_that_says_the_answer_outranks_what_the_judge_knows() -> None:
    def knows_better(template: str, values: Values) -> dict[str, float]:
        if template == "knowledge":
            return {"false": 1.0}
        return masses(template, values)

    judge = FakeJudge(Script(), knows_better)
    judgment, _ = await judged(judge)
    assert judgment.probability == pytest.approx(0.75)
    assert not judge.asked("knowledge")


async def test_nothing_is_cited_where_nothing_was_found() -> None:
    judgment, _ = await judged(FakeJudge(Script(cites=("E1",)), masses), FakeSearch(empty=True))
    assert judgment.citations == ()
    assert judgment.dropped_citations == ()


async def test_a_rationale_that_argues_for_the_other_label_is_flagged() -> None:
    judgment, _ = await judged(FakeJudge(Script(argues=False), masses))
    assert judgment.verdict
    assert judgment.rationale_disagrees


async def test_searches_are_made_once_for_all_responses_to_a_question() -> None:
    method, search = Sage.from_options({}), FakeSearch()
    reused = []
    for response in ("one", "two"):
        trace = ListTrace()
        context = MethodContext(judge=FakeJudge(Script(), masses), search=search, trace=trace)
        sample = Sample(id=response, question="Which fact?", response=response)
        await method.judge(sample, context)
        reused.append([e.reused for e in trace.events if isinstance(e, SearchFinished)])
    assert len(search.queries) == 3
    assert reused == [[False] * 3, [True] * 3]


async def test_a_refusal_by_the_judge_leaves_the_sample_unscored() -> None:
    judge = FakeJudge(lambda template, values: "I'm sorry, I can't help with that.", masses)
    with pytest.raises(UnscoredError, match="refused"):
        await judged(judge)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"round": 2}, "Did you mean `rounds`"),
        ({"rounds": "many"}, "Option `rounds`"),
        ({"results": "0"}, "Option `results`"),
        ({"single_pass": True, "rounds": 2}, "leave `rounds` out"),
    ],
)
def test_a_bad_option_is_named(options: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        Sage.from_options(options)


def test_options_may_come_as_text() -> None:
    assert Sage.from_options({"rounds": "2", "rationale": "false"}).options["rounds"] == 2


async def test_of_several_other_queries_the_first_new_one_is_taken() -> None:
    class Repeating(Script):
        def __call__(self, template: str, values: Values) -> str:
            if template == "query.again":
                return "Same query; another one; a third"
            return super().__call__(template, values)

    judgment, trace = await judged(FakeJudge(Repeating(repeat=True), masses))
    rounds = [event.query for event in trace.events if isinstance(event, RoundFinished)]
    assert rounds == ["same query", "another one", "a third"]
    assert judgment.fallback_rounds == 0


async def test_a_query_that_cannot_be_had_gives_way_to_the_question() -> None:
    class Silent(Script):
        def __call__(self, template: str, values: Values) -> str:
            return "" if template == "query" else super().__call__(template, values)

    search = FakeSearch()
    await judged(FakeJudge(Silent(), masses), search)
    assert search.queries[0] == SAMPLE.question


async def test_search_for_is_no_part_of_what_is_missing() -> None:
    class Wordy(Script):
        def __call__(self, template: str, values: Values) -> str:
            if template == "reflection.missing":
                return 'Search for "the year"'
            return super().__call__(template, values)

    _, trace = await judged(FakeJudge(Wordy(), masses))
    assert next(e.missing for e in trace.events if isinstance(e, RoundFinished)) == "the year"


async def test_a_rationale_cut_by_the_limit_ends_with_its_last_whole_sentence() -> None:
    class Long(Script):
        def __call__(self, template: str, values: Values) -> str:
            text = super().__call__(template, values)
            return text.replace("So it says.", "So it says. And it goes on with")

    judgment, _ = await judged(FakeJudge(Long(), masses))
    assert judgment.rationale == "So it says."
