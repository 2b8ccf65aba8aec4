"""SAGE: what each role sees, what the memory keeps, and what becomes of outages and repeats."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fake_judge import FakeJudge, FakeSearch, ListTrace
from hypothesis import given
from hypothesis import strategies as st

from offline_judge.domain.events import RoundFinished, SearchFinished
from offline_judge.domain.evidence import EvidenceState
from offline_judge.domain.judgment import Judgment
from offline_judge.domain.sample import Sample
from offline_judge.errors import UnscoredError, UsageError
from offline_judge.methods.sage.method import Sage
from offline_judge.protocols import MethodContext, Untrusted, Values


def _flat(values: dict[str, Any]) -> str:
    def text(value: Any) -> str:
        if isinstance(value, Untrusted):
            return value.text
        return " ".join(map(text, value)) if isinstance(value, tuple) else str(value)

    return " ".join(map(text, values.values()))


class Script:
    """Distinct queries, a summary that quotes passage 2, JSON rationales."""

    def __init__(
        self, *, repeat: bool = False, cites: tuple[str, ...] = ("E1",), argues: bool = True
    ) -> None:
        self.repeat, self.cites, self.argues, self.count = repeat, cites, argues, 0

    def __call__(self, template: str, values: Values) -> str:
        if template == "verdict.rationale":
            fields: dict[str, Any] = {"rationale": "So it says.", "correct": self.argues}
            return json.dumps(fields | ({"cites": self.cites} if values["cite"] else {}))
        if template.startswith("query"):
            self.count += 1
            return "same query" if self.repeat else f"query {self.count}"
        return {"summary": "It is fact number 2.", "reflection.missing": "the year"}[template]


def masses(template: str, values: Values) -> dict[str, float]:
    if template == "reflection":
        return {"supports": 0.7, "contradicts": 0.1, "inconclusive": 0.1}
    return {"true": 0.6, "false": 0.2}


SAMPLE = Sample(id="s", question="Which fact?", response="The second one")


async def judged(
    judge: FakeJudge, search: FakeSearch | None = None, sample: Sample = SAMPLE, **options: Any
) -> tuple[Judgment, ListTrace]:
    trace = ListTrace()
    context = MethodContext(judge=judge, search=search or FakeSearch(), trace=trace)
    return await Sage.from_options(options).judge(sample, context), trace


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
    assert [r.stance for r in rounds] == ["supports"] * 3
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
    assert "the year" in _flat(judge.asked("query")[1].values)


async def test_notes_only_grow() -> None:
    judge = FakeJudge(Script(), masses)
    await judged(judge)
    notes = [call.values["notes"] for call in judge.asked("query")]
    assert [len(n) for n in notes] == [0, 1, 2]
    assert notes[2][:1] == notes[1]


async def test_a_passage_is_read_once_even_if_every_query_finds_it_again() -> None:
    judge = FakeJudge(Script(), masses)
    await judged(judge)
    read = " ".join(_flat(call.values) for call in judge.asked("summary"))
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
    second = _flat(judge.asked("summary")[1].values)
    assert "Fact number 4." in second
    assert "Fact number 1." not in second


async def test_the_verdict_is_shown_the_passage_the_summary_leans_on() -> None:
    judge = FakeJudge(Script(), masses)
    await judged(judge)
    shown = judge.asked("verdict")[0].values["evidence"]
    assert shown == Untrusted("[E2] T2: Fact number 2.", "evidence")


async def test_citations_of_unknown_evidence_are_dropped_and_counted() -> None:
    judgment, _ = await judged(FakeJudge(Script(cites=("E2", "E77", "[E2]")), masses))
    assert judgment.citations == ("E2",)
    assert judgment.dropped_citations == ("E77",)


async def test_an_outage_is_told_apart_from_finding_nothing() -> None:
    judge = FakeJudge(Script(), masses)
    judgment, trace = await judged(judge, FakeSearch(down=True))
    assert judgment.evidence_state is EvidenceState.FAILED
    assert "could not be reached" in judge.asked("verdict")[0].values["no_evidence"]
    searches = [event for event in trace.events if isinstance(event, SearchFinished)]
    assert all(event.error and not event.hits for event in searches)

    judgment, _ = await judged(FakeJudge(Script(), masses), FakeSearch(empty=True))
    assert judgment.evidence_state is EvidenceState.NONE_FOUND


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


async def test_the_verdict_is_shown_the_note_of_the_round_that_found_its_passage() -> None:
    judge = FakeJudge(Script(), masses)
    await judged(judge)
    assert judge.asked("verdict")[0].values["notes"] == ("It is fact number 2.",)


async def test_without_evidence_there_is_no_note() -> None:
    judge = FakeJudge(Script(), masses)
    await judged(judge, FakeSearch(empty=True))
    assert judge.asked("verdict")[0].values["notes"] == ()
