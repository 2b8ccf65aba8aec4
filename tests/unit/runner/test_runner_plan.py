"""Planning: limits, what resume reuses and says, and what forbids it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offline_judge.domain.events import SampleFinished
from offline_judge.domain.judgment import Judgment, Outcome
from offline_judge.domain.run import DataSource, ModelIdentity, RunManifest
from offline_judge.domain.sample import Sample
from offline_judge.errors import RunChangedError
from offline_judge.runner.plan import Done, check_data, check_same_judge, make_plan


def _sample(name: str, response: str = "r") -> Sample:
    return Sample(id=name, question=f"q{name[0]}", response=response)


GROUPS = ((_sample("a1"), _sample("a2")), (_sample("b1"), _sample("b2")), (_sample("c1"),))
ALL = tuple(sample for group in GROUPS for sample in group)


def _ended(name: str, outcome: Outcome) -> SampleFinished:
    judgment = Judgment(verdict=True, probability=1) if outcome is Outcome.SCORED else None
    return SampleFinished(sample_id=name, outcome=outcome, judgment=judgment)


def _done(**outcomes: Outcome | None) -> Done:
    samples = {sample.id: sample for sample in ALL if sample.id in outcomes}
    return Done(samples, {k: _ended(k, v) for k, v in outcomes.items() if v is not None})


def _ids(groups: tuple[tuple[Sample, ...], ...]) -> list[list[str]]:
    return [[sample.id for sample in group] for group in groups]


def test_a_new_run_takes_everything_and_explains_nothing() -> None:
    plan = make_plan(GROUPS)
    assert plan.groups == GROUPS
    assert (plan.planned, plan.reused, plan.limited, plan.notes) == (5, 0, False, ())


def test_a_limit_cuts_inside_a_group() -> None:
    plan = make_plan(GROUPS, limit=3)
    assert _ids(plan.groups) == [["a1", "a2"], ["b1"]]
    assert plan.planned == 3
    assert plan.limited
    assert "2 more samples" in plan.notes[-1]


@given(st.integers(0, 6), st.integers(0, 6))
def test_a_higher_limit_only_adds_samples(low: int, more: int) -> None:
    few = make_plan(GROUPS, limit=low).samples
    many = make_plan(GROUPS, limit=low + more).samples
    assert many[: len(few)] == few
    assert len(few) == min(low, 5)


def test_scored_and_unscored_samples_stand_and_all_others_are_judged_again() -> None:
    plan = make_plan(
        GROUPS,
        done=_done(
            a1=Outcome.SCORED, a2=Outcome.UNSCORED, b1=Outcome.ERROR, b2=Outcome.CANCELLED, c1=None
        ),
    )
    assert _ids(plan.groups) == [["b1", "b2"], ["c1"]]
    assert (plan.planned, plan.reused, plan.reused_unscored) == (5, 2, 1)
    text = " ".join(plan.notes)
    assert "reused 2: already judged" in text
    assert "judging again 1: ended in an error" in text
    assert "judging again 1: cancelled before" in text
    assert "judging again 1: interrupted in the middle" in text


def test_resume_says_how_many_are_not_yet_started() -> None:
    assert "not yet started: 4." in make_plan(GROUPS, done=_done(a1=Outcome.SCORED)).notes


def test_an_outcome_of_other_content_does_not_stand() -> None:
    done = Done({"c1": _sample("c1", "another")}, {"c1": _ended("c1", Outcome.SCORED)})
    plan = make_plan(GROUPS, done=done)
    assert plan.reused == 0
    assert "c1" in [sample.id for sample in plan.samples]
    assert any("read differently" in note for note in plan.notes)


def test_the_limit_of_a_resumed_run_counts_what_is_reused() -> None:
    plan = make_plan(GROUPS, limit=3, done=_done(a1=Outcome.SCORED))
    assert _ids(plan.groups) == [["a2"], ["b1"]]
    assert plan.planned == 3


def _source(sha256: str = "x", rows: int = 5) -> DataSource:
    return DataSource(path="data.jsonl", sha256=sha256, format="jsonl", rows=rows)


def test_the_same_file_passes() -> None:
    check_data(_source(), _source(), (), _done(a1=Outcome.SCORED))


def test_a_changed_file_names_what_changed_and_what_is_gone() -> None:
    now = [_sample("a1", "edited"), *ALL[1:4]]
    done = _done(a1=Outcome.SCORED, a2=Outcome.SCORED, c1=None)
    with pytest.raises(RunChangedError) as caught:
        check_data(_source(), _source("y", 4), now, done)
    text = str(caught.value)
    assert "1 (a1) changed" in text
    assert "1 (c1) are gone" in text
    assert "had 5 rows and has 4" in text
    assert "Restore the file" in text


def test_only_three_ids_are_named() -> None:
    done = _done(a1=None, a2=None, b1=None, b2=None)
    with pytest.raises(RunChangedError) as caught:
        check_data(_source(), _source("y", 0), (), done)
    assert "4 (a1, a2, b1, ...) are gone" in str(caught.value)


def test_rows_merely_appended_are_refused_and_told_as_such() -> None:
    with pytest.raises(RunChangedError) as caught:
        check_data(_source(), _source("y", 6), ALL, _done(a1=Outcome.SCORED))
    assert "had 5 rows and has 6" in str(caught.value)
    assert "rows were added" in str(caught.value)


def _manifest(**changes: Any) -> RunManifest:
    base: dict[str, Any] = {
        "run_id": "r",
        "created": "t",
        "method": "direct",
        "data": _source(),
        "judge": ModelIdentity(name="j", sha256="weights", engine="e"),
        "prompts": {"verdict": "h1", "query": "h2"},
        "versions": {"python": "3.11"},
    }
    return RunManifest.model_validate(base | changes)


def test_the_same_judge_passes() -> None:
    assert check_same_judge(_manifest(), _manifest()) == ()


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"prompts": {"verdict": "other", "query": "h2"}}, "prompts (verdict)"),
        ({"judge": ModelIdentity(name="j", sha256="others", engine="e")}, "weights"),
        ({"options": {"rounds": 2}}, "options"),
    ],
)
def test_another_judge_is_refused_and_named(change: dict[str, Any], word: str) -> None:
    with pytest.raises(RunChangedError) as caught:
        check_same_judge(_manifest(), _manifest(**change))
    assert word in str(caught.value)
    assert "two judges" in str(caught.value)


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ({}, {"provider": "corpus", "name": "mine"}, "nothing then, corpus `mine` now"),
        (
            {"provider": "corpus", "name": "mine", "content": "1", "passages": 3},
            {"provider": "corpus", "name": "mine", "content": "2", "passages": 3},
            "corpus `mine` (content) changed",
        ),
        (
            {"provider": "corpus", "name": "mine"},
            {"provider": "corpus", "name": "other"},
            "corpus `mine` then, corpus `other` now",
        ),
    ],
)
def test_a_changed_corpus_is_refused_by_name_and_is_no_second_judge(
    before: dict[str, Any], after: dict[str, Any], told: str
) -> None:
    with pytest.raises(RunChangedError) as caught:
        check_same_judge(_manifest(search=before), _manifest(search=after))
    assert told in str(caught.value)
    assert "different evidence" in str(caught.value)
    assert "two judges" not in str(caught.value)


def test_another_version_of_a_package_is_told_and_not_refused() -> None:
    notes = check_same_judge(_manifest(), _manifest(versions={"python": "3.12"}))
    assert notes == ("python was 3.11 when the run began and is 3.12 now.",)


def test_a_limit_below_what_is_judged_leaves_nothing_to_do() -> None:
    everything = {s.id: Outcome.SCORED for group in GROUPS for s in group}
    plan = make_plan(GROUPS, limit=1, done=_done(**everything))
    assert plan.groups == ()
    assert plan.planned == plan.reused == len(everything)
    assert not plan.limited
