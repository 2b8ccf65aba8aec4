"""The fold: figures, attempts, status, and that it does not matter where a run was cut."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from runs_helpers import called, finished, sample, searched, started, whole_run

from offline_judge.domain.events import (
    AnyEvent,
    EngineStarted,
    RoundFinished,
    RunFinished,
    RunStarted,
    SampleFinished,
    UnknownEvent,
    WarningRaised,
)
from offline_judge.domain.judgment import Outcome
from offline_judge.runs.reducer import UNFINISHED, RunState, fold

NAMES = st.sampled_from(["a", "b", "c", "d"])
OUTCOMES = st.sampled_from(list(Outcome))
EVENTS = st.one_of(
    st.builds(RunStarted, planned=st.integers(0, 9)),
    st.builds(started, NAMES, st.sampled_from([True, False, None])),
    st.builds(called, NAMES, reused=st.booleans()),
    st.builds(searched, NAMES, reused=st.booleans(), error=st.sampled_from(["", "down"])),
    st.builds(finished, NAMES, OUTCOMES, st.booleans()),
    st.builds(RoundFinished, sample_id=NAMES, round=st.integers(0, 2), query=st.just("q")),
    st.just(EngineStarted(engine="e", window=1, slots=1)),
    st.builds(WarningRaised, message=st.text(max_size=3)),
    st.builds(RunFinished, status=st.sampled_from(["completed", "drained"])),
    st.just(UnknownEvent(event="tomorrow", sample_id="a")),
)


def _seen(state: RunState) -> dict[str, Any]:
    return {
        "summary": state.summary(),
        "rows": state.rows(),
        "settled": state.settled,
        "unfinished": state.unfinished,
        "in_flight": state.in_flight,
        "warnings": state.warnings,
    }


@settings(max_examples=60, deadline=None)
@given(st.lists(EVENTS, max_size=25), st.integers(0, 25))
def test_folding_a_prefix_then_the_rest_is_folding_all(events: list[AnyEvent], cut: int) -> None:
    state = fold(events[:cut])
    _seen(state)  # asking in between changes nothing
    for event in events[cut:]:
        state.apply(event)
    assert _seen(state) == _seen(fold(events))


@settings(max_examples=60, deadline=None)
@given(st.lists(EVENTS, max_size=25), st.lists(st.integers(0, 25), max_size=4))
def test_resuming_at_any_points_leaves_the_same_rows_and_costs(
    events: list[AnyEvent], cuts: list[int]
) -> None:
    whole = fold(events)
    resumed = list(events)
    for cut in sorted(cuts, reverse=True):
        resumed[cut:cut] = [RunStarted(planned=4, reused=1, resumed=True)]
    state = fold(resumed)
    assert state.rows() == whole.rows()
    assert state.settled == whole.settled
    same = {"planned", "status"}
    assert state.summary().model_dump(exclude=same) == whole.summary().model_dump(exclude=same)


def test_the_summary_of_a_run() -> None:
    summary = fold(whole_run(), "run-1").summary()
    assert summary.run_id == "run-1"
    assert summary.status == "completed"
    assert summary.planned == 2
    assert summary.outcomes == {"error": 1, "scored": 1}
    assert summary.reasons == {"ValueError": 1}
    assert summary.evidence_states == {"found": 1}
    assert summary.verdict_true == 1
    assert (summary.calls, summary.prompt_tokens, summary.read_anew) == (2, 20, 12)
    assert summary.completion_tokens == 6
    assert (summary.searches, summary.failed_searches) == (1, 0)
    assert summary.seconds == 3.0
    assert (summary.distinct_queries, summary.fallback_rounds) == (2.0, 1)
    assert (summary.disagreeing_rationales, summary.dropped_citations) == (1, 2)


def test_what_was_reused_costs_nothing_and_is_counted_apart() -> None:
    events: list[AnyEvent] = [
        called(reused=True),
        searched(reused=True, error="down"),
        searched(error="down"),
    ]
    summary = fold(events).summary()
    assert (summary.calls, summary.reused_calls, summary.prompt_tokens) == (0, 1, 0)
    assert (summary.searches, summary.failed_searches) == (1, 1)


def test_a_sample_counts_by_its_last_end_and_costs_all_its_attempts() -> None:
    events: list[AnyEvent] = [
        started(),
        called(),
        finished(outcome=Outcome.ERROR),
        RunStarted(planned=1, resumed=True),
        started(),
        called(),
        finished(),
    ]
    state = fold(events)
    assert state.summary().outcomes == {"scored": 1}
    assert state.summary().reasons == {}
    assert state.summary().prompt_tokens == 20
    assert state.summary().seconds == 3.0
    assert [row.outcome for row in state.rows()] == ["scored"]


def test_scored_and_unscored_stand_all_else_is_judged_again() -> None:
    events = [finished(outcome.value, outcome) for outcome in Outcome]
    assert fold([*events, started("open")]).settled == {"scored", "unscored"}


def test_agreement_is_over_labelled_and_scored_samples_with_the_others_beside() -> None:
    state = fold(
        [
            *(started(name, True) for name in "abc"),
            started("d", False),
            started("e"),
            started("f", True),
            finished("a", verdict=True),
            finished("b", verdict=False),
            finished("c", Outcome.UNSCORED),
            finished("d", verdict=False),
            finished("e", verdict=True),
        ]
    )
    found = state.summary().agreement
    assert found is not None
    assert (found.n, found.unscored) == (3, 1)
    assert found.accuracy == pytest.approx(2 / 3)
    assert found.kappa == pytest.approx(0.4)


def test_no_labels_no_agreement() -> None:
    assert fold([started(), finished()]).summary().agreement is None


def test_a_judgment_of_a_sample_that_is_not_scored_is_no_verdict() -> None:
    judgment = finished().judgment
    event = SampleFinished(sample_id="a", outcome=Outcome.CANCELLED, judgment=judgment)
    state = fold([started("a", True), event])
    (row,) = state.rows()
    assert (row.verdict, row.probability, row.outcome) == (None, None, "cancelled")
    assert state.summary().verdict_true == 0
    assert state.summary().reasons == {"unknown": 1}


def test_a_row_holds_sample_and_judgment_and_an_unfinished_one_no_verdict() -> None:
    state = fold([started("b"), started("a", False), finished("a", verdict=False)])
    unfinished, row = state.rows()
    assert (unfinished.id, unfinished.outcome, unfinished.verdict) == ("b", UNFINISHED, None)
    assert unfinished.question == sample("b").question
    assert (row.label, row.verdict, row.probability, row.searches) == (False, False, 0.1, 3)
    assert row.evidence_state == "found"
    assert state.unfinished == ("b",)


def test_status_tells_running_interrupted_and_how_it_ended() -> None:
    state = RunState()
    assert state.status == "running"
    state.apply(RunStarted(planned=3))
    state.apply(started())
    state.live = False
    assert state.status == "interrupted"
    state.apply(RunFinished(status="drained"))
    assert state.status == "drained"
    state.apply(RunStarted(planned=3, resumed=True))
    assert (state.status, state.in_flight) == ("interrupted", ())
    state.live = True
    assert (state.status, state.summary().planned) == ("running", 3)
