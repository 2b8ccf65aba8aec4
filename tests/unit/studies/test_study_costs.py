"""Where the time goes: sums that agree with the run's, and what a condition costs alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from study_helpers import SmallSearch, scripted_settings, work_on, write_data

from offline_judge import api, wiring
from offline_judge.domain.costs import StageCost
from offline_judge.domain.events import (
    AnyEvent,
    CallFinished,
    SampleFinished,
    SampleStarted,
    SearchFinished,
)
from offline_judge.domain.judgment import Outcome
from offline_judge.domain.message import Timings, Usage
from offline_judge.domain.sample import Sample
from offline_judge.runs.costs import fold_costs
from offline_judge.settings import Settings
from offline_judge.studies.alone import Prices, SampleCost, cost_alone, learn_prices
from offline_judge.studies.collecting import collect
from offline_judge.studies.conduct import conduct
from offline_judge.studies.costs import CostRow, read_costs, shared_rounds, write_costs


def call(prompt: str, sample: str = "a", *, read: int = 10, **more: Any) -> CallFinished:
    """A call that read 10 tokens and wrote 1 in 2 s, or an answer from the cache."""
    reused = more.get("reused", False)
    usage = (
        Usage(prompt_tokens=0)
        if reused
        else Usage(prompt_tokens=read + 5, cached_tokens=5, completion_tokens=1)
    )
    values: dict[str, Any] = {
        "sample_id": sample,
        "stage": "verdict",
        "template": "sage/verdict",
        "template_hash": "t",
        "prompt_hash": prompt,
        "usage": usage,
        "timings": Timings() if reused else Timings(prompt_s=1.5, generate_s=0.5),
    }
    return CallFinished(**{**values, **more})


def around(*calls: AnyEvent, sample: str = "a", outcome: str = "scored") -> list[AnyEvent]:
    """A whole sample that took 3 s."""
    one = Sample(id=sample, question="q", response="r")
    end = SampleFinished(sample_id=sample, outcome=Outcome(outcome), seconds=3.0)
    return [SampleStarted(sample_id=sample, sample=one), *calls, end]


def alone(events: Sequence[AnyEvent], *others: Sequence[AnyEvent]) -> dict[str, SampleCost]:
    prices: Prices = {}
    for run in (events, *others):
        learn_prices(run, prices)
    return cost_alone(events, prices)


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setattr(wiring, "open_search", lambda *_: SmallSearch())
    return scripted_settings(tmp_path)


def test_stages_sum_to_the_totals_of_the_run(settings: Settings, tmp_path: Path) -> None:
    work = work_on(write_data(tmp_path / "d.jsonl"), "sage", "sage-n1")
    for run_id in conduct(work, settings, None).runs.values():
        summary, costs = api.load_run(run_id, settings).summary, api.run_costs(run_id, settings)
        total = costs.total
        assert summary.calls + summary.reused_calls > 0
        assert (total.calls, total.reused) == (summary.calls, summary.reused_calls)
        assert total.prompt_tokens == summary.prompt_tokens
        assert total.read_anew == summary.read_anew
        assert total.written == summary.completion_tokens
        assert costs.searches == summary.searches
        assert costs.seconds == pytest.approx(summary.seconds, abs=0.01)
        assert costs.samples == 8


def test_turns_of_a_stage_are_one_role() -> None:
    calls = [call("a"), call("b", stage="verdict.rationale"), call("c", stage="query")]
    costs = fold_costs(around(*calls))
    assert [stage.stage for stage in costs.stages] == ["verdict", "verdict.rationale", "query"]
    assert [(role.role, role.calls) for role in costs.roles()] == [("verdict", 2), ("query", 1)]


def test_what_is_neither_engine_nor_search_is_never_negative() -> None:
    searched = SearchFinished(sample_id="a", query="q", provider="p", seconds=0.5)
    assert fold_costs(around(call("a"), searched)).rest_s == pytest.approx(0.5)
    assert fold_costs(around(call("a"), call("b"), searched)).rest_s == 0.0


def test_an_answer_that_another_condition_paid_for_is_charged_at_its_price() -> None:
    dear, cheap = around(call("p", read=40)), around(call("p", reused=True), call("own"))
    cost = alone(cheap, dear)["a"]
    assert cost.read_anew == 50
    assert cost.seconds == pytest.approx(3.0 + 2.0)
    assert cost.unpriced == 0
    assert cost.stages["verdict"].calls == 2


def test_an_answer_the_condition_paid_for_itself_costs_nothing_again() -> None:
    run = [*around(call("p", read=40)), *around(call("p", "b", reused=True), sample="b")]
    found = alone(run)
    assert (found["a"].read_anew, found["b"].read_anew) == (40, 0)
    assert found["b"].seconds == 3.0


def test_an_answer_of_another_condition_is_charged_once_only() -> None:
    dear = around(call("p", read=40))
    run = [
        *around(call("p", reused=True)),
        *around(call("p", "b", reused=True), sample="b"),
    ]
    found = alone(run, dear)
    assert (found["a"].read_anew, found["b"].read_anew) == (40, 0)


def test_an_answer_whose_price_nobody_knows_is_counted() -> None:
    assert alone(around(call("p", reused=True)))["a"].unpriced == 1


def test_rejected_attempts_belong_to_the_price() -> None:
    retry = call("p2", attempt=1, follows="p", read=7)
    dear = around(call("p", read=40, problem="malformed: no JSON"), retry)
    cost = alone(around(call("p", reused=True)), dear)["a"]
    assert cost.read_anew == 47
    assert cost.stages["verdict"].calls == 2


def test_a_reading_and_an_answer_on_one_prompt_have_prices_of_their_own() -> None:
    masses = {"true": 0.5, "false": 0.5}
    dear = around(call("p", read=40, masses=masses), call("p", read=3))
    cheap = around(call("p", reused=True))
    assert alone(cheap, dear)["a"].read_anew == 3


def test_what_an_interrupted_attempt_paid_is_charged_to_the_one_that_ended() -> None:
    one = Sample(id="a", question="q", response="r")
    run = [
        SampleStarted(sample_id="a", sample=one),
        call("p", read=40),
        *around(call("p", reused=True), call("own")),
    ]
    assert alone(run)["a"].read_anew == 50


def test_a_cancelled_attempt_is_replaced_by_the_next() -> None:
    run = [
        *around(call("p", read=40), outcome="cancelled"),
        *around(call("p", reused=True)),
    ]
    assert alone(run)["a"].read_anew == 40


def test_rounds_are_shared(settings: Settings, tmp_path: Path) -> None:
    work = work_on(write_data(tmp_path / "d.jsonl", 8), "sage", "sage-n2", "sage-n1")
    done = conduct(work, settings, None)
    found = collect(done.runs, work.samples, settings)
    shared = shared_rounds(found.costs, 0)
    assert shared is not None
    assert 1.0 <= shared.ratio <= 1.25
    assert sum(score.unpriced for score in found.scores) == 0
    mean = {
        name: sum(one.read_anew for one in found.scores if one.condition == name) / 16
        for name in done.runs
    }
    assert mean["sage-n1"] < mean["sage-n2"] < mean["sage"]
    # What it paid beside the others says nothing of what it costs alone.
    paid = api.run_costs(done.runs["sage-n1"], settings).total.read_anew / 16
    assert paid < mean["sage-n1"] / 2


def test_sharing_says_nothing_where_a_condition_is_missing() -> None:
    row = CostRow(condition="sage", kind="alone", samples=1, stage="verdict", read_anew=1)
    assert shared_rounds([row], 0) is None
    assert shared_rounds([], 0) is None


def test_costs_are_read_as_they_were_written(tmp_path: Path) -> None:
    stage = StageCost(stage="query", calls=3, prompt_tokens=7, read_anew=5, written=2, read_s=0.25)
    rows = (CostRow(**stage.model_dump(), condition="sage", kind="paid", samples=4),)
    path = tmp_path / "costs.csv"
    path.write_text(write_costs(rows))
    assert read_costs(path) == rows
    assert read_costs(tmp_path / "none.csv") == ()
