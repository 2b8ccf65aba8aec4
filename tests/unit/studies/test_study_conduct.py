"""Judging under several conditions: paired, resumable, one engine, rounds shared."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from study_helpers import Ears, SmallSearch, ended, scripted_settings, work_on, write_data

from offline_judge import api, wiring
from offline_judge.backends.scripted import ScriptedBackend
from offline_judge.domain.events import AnyEvent, EngineStarted, SampleFinished
from offline_judge.domain.message import Label, Sampling
from offline_judge.errors import RunLockedError
from offline_judge.runs.lock import RunLock
from offline_judge.settings import Settings
from offline_judge.studies.conduct import conduct
from offline_judge.studies.engine_share import EngineShare

ROUNDS = ("sage", "sage-n2", "sage-n1")


@pytest.fixture
def search(monkeypatch: pytest.MonkeyPatch) -> SmallSearch:
    found = SmallSearch()
    monkeypatch.setattr(wiring, "open_search", lambda _settings, _listener: found)
    return found


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, search: SmallSearch) -> Settings:
    # A socket of one's own.
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return scripted_settings(tmp_path)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_data(tmp_path / "data.jsonl")


def test_every_condition_is_a_run_that_judged_everything_once(
    settings: Settings, data: Path
) -> None:
    done = conduct(work_on(data, "direct", *ROUNDS), settings, None)
    assert done.status == "completed"
    assert list(done.runs) == ["direct", *ROUNDS]
    for run_id in done.runs.values():
        view = api.load_run(run_id, settings)
        assert view.summary.status == "completed"
        assert view.summary.outcomes == {"scored": 8}
        assert (settings.runs_path / run_id / "results.json").exists()


def test_all_conditions_take_the_questions_in_one_random_order(
    settings: Settings, data: Path
) -> None:
    done = conduct(work_on(data, "direct", "sage"), settings, None)
    orders = {tuple(ended(run_id, settings)) for run_id in done.runs.values()}
    assert len(orders) == 1
    assert orders != {tuple(f"s{n}" for n in range(8))}


def test_one_engine_serves_all_conditions(settings: Settings, data: Path) -> None:
    ears = Ears()
    conduct(work_on(data, "direct", "sage", "sage-single"), settings, ears)
    assert ears.phases.count("spawn") == 1
    assert any(isinstance(event, EngineStarted) for event in ears.events)


def test_the_engine_does_nothing_but_judge(
    settings: Settings, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Timing the engine before each question would push prefixes out of its slots.
    engine, identity = wiring.make_engine(settings, 8)
    monkeypatch.setattr(wiring, "make_engine", lambda *_: (engine, identity))
    done = conduct(work_on(data, "direct", "sage-n1"), settings, None)
    calls = sum(api.run_costs(run_id, settings).total.calls for run_id in done.runs.values())
    assert isinstance(engine.backend, ScriptedBackend)
    assert engine.backend.calls == calls > 0


def test_the_search_is_opened_and_closed_once(
    settings: Settings, data: Path, search: SmallSearch
) -> None:
    conduct(work_on(data, "sage", "sage-n1"), settings, None)
    assert search.searches > 0
    assert search.closed == 1


def test_a_second_call_judges_nothing_and_knows_its_runs(settings: Settings, data: Path) -> None:
    work = work_on(data, "direct", "sage")
    first, ears = conduct(work, settings, None), Ears()
    again = conduct(work, settings, ears)
    assert again == first
    assert ears.judged() == []
    assert "spawn" not in ears.phases


def test_another_seed_is_another_study(settings: Settings, data: Path, tmp_path: Path) -> None:
    first = conduct(work_on(data, "direct"), settings, None)
    other = conduct(work_on(data, "direct"), scripted_settings(tmp_path, seed=1), None)
    assert first.runs != other.runs


def test_stopped_in_the_middle_it_goes_on_and_judges_each_sample_once(
    settings: Settings, data: Path
) -> None:
    def interrupt(event: AnyEvent) -> None:
        if isinstance(event, SampleFinished) and len(ears.judged()) == 5:
            signal.raise_signal(signal.SIGINT)

    work, ears = work_on(data, "direct", "sage", "sage-n1"), Ears(interrupt)
    first = conduct(work, settings, ears)
    assert first.status == "stopped"
    assert len(ears.judged()) < 10
    second = conduct(work, settings, None)
    assert second.runs == first.runs
    assert second.status == "completed"
    for run_id in second.runs.values():
        assert sorted(ended(run_id, settings)) == sorted(f"s{n}" for n in range(8))


@pytest.fixture
def ticks() -> Iterator[float]:
    """A clock that lets two questions begin within a minute."""
    return iter([0.0, 10.0, 20.0, 90.0, 90.0])


def test_minutes_leave_the_same_samples_under_every_condition(
    settings: Settings, data: Path, ticks: Iterator[float]
) -> None:
    work = work_on(data, "direct", "sage", "sage-n1", minutes=1.0)
    done = conduct(work, settings, None, clock=lambda: next(ticks))
    assert done.status == "limit"
    judged = {tuple(ended(run_id, settings)) for run_id in done.runs.values()}
    assert {len(names) for names in judged} == {4}
    assert len(judged) == 1
    status = {api.load_run(run_id, settings).summary.status for run_id in done.runs.values()}
    assert status == {"limit"}


def test_a_limit_counts_samples_of_each_condition(settings: Settings, data: Path) -> None:
    done = conduct(work_on(data, "direct", "sage", limit=3), settings, None)
    assert done.status == "limit"
    assert {len(ended(run_id, settings)) for run_id in done.runs.values()} == {3}
    more = conduct(work_on(data, "direct", "sage", limit=5), settings, None)
    assert more.runs == done.runs
    assert {len(ended(run_id, settings)) for run_id in more.runs.values()} == {5}


def test_a_run_that_judged_the_same_way_already_is_gone_on_with(
    settings: Settings, data: Path
) -> None:
    options = {"rationale": False}
    earlier = api.run(api.RunRequest("direct", data, limit=3, options=options), settings)
    done = conduct(work_on(data, "direct", "sage"), settings, None)
    assert done.runs["direct"] == earlier.manifest.run_id
    assert len(set(ended(done.runs["direct"], settings))) == 8


def test_a_run_with_other_options_is_not_taken(settings: Settings, data: Path) -> None:
    other = api.run(api.RunRequest("direct", data), settings)
    done = conduct(work_on(data, "direct"), settings, None)
    assert done.runs["direct"] != other.manifest.run_id


def test_progress_counts_all_conditions_together(settings: Settings, data: Path) -> None:
    ears = Ears()
    conduct(work_on(data, "direct", "sage"), settings, ears)
    assert [ears.standings[-1].finished, ears.standings[-1].planned] == [16, 16]
    again = Ears()
    conduct(work_on(data, "direct", "sage", "sage-n1"), settings, again)
    assert [again.standings[-1].finished, again.standings[-1].planned] == [24, 24]


def test_without_a_cache_of_the_user_rounds_are_shared_all_the_same(
    data: Path, tmp_path: Path, settings: Settings
) -> None:
    done = conduct(work_on(data, *ROUNDS), scripted_settings(tmp_path, cache=False), None)
    costs = {name: api.run_costs(run_id, settings) for name, run_id in done.runs.items()}
    assert costs["sage-n1"].total.reused > 0
    assert costs["sage-n1"].total.read_anew < costs["sage"].total.read_anew / 4
    assert not (tmp_path / "cache" / "completions.sqlite").exists()


def test_several_lanes_judge_several_questions_at_a_time(data: Path, tmp_path: Path) -> None:
    settings = scripted_settings(tmp_path, lanes=3)
    done = conduct(work_on(data, "direct", "lexical"), settings, None)
    assert {len(ended(run_id, settings)) for run_id in done.runs.values()} == {8}


def test_string_comparison_alone_needs_no_weights(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = write_data(tmp_path / "key.jsonl", every={"reference": ["hidden 0"]})

    def no_weights(*_: object) -> None:
        raise AssertionError("an engine was asked for")

    monkeypatch.setattr(wiring, "make_engine", no_weights)
    done = conduct(work_on(data, "lexical"), settings, None)
    assert len(ended(done.runs["lexical"], settings)) == 8


def test_a_run_that_another_process_has_is_refused(settings: Settings, data: Path) -> None:
    done = conduct(work_on(data, "direct"), settings, None)
    with (
        RunLock(settings.runs_path / done.runs["direct"] / "lock"),
        pytest.raises(RunLockedError),
    ):
        conduct(work_on(data, "direct", "sage"), settings, None)


async def test_stages_of_two_methods_keep_to_slots_of_their_own() -> None:
    seen: list[str] = []

    class Backend:
        name = "fake"

        async def generate(self, *_: object, affinity: str = "") -> object:
            seen.append(affinity)
            if affinity == "none":
                yield affinity

        async def label_probabilities(self, *_: object, affinity: str = "") -> None:
            seen.append(affinity)

    share = EngineShare(Backend())  # type: ignore[arg-type]  # only what is called
    prompt, labels = object(), [Label(name="true", text="Yes")]
    for method in ("direct", "sage"):
        view = share.view(method)
        assert view.name == "fake"
        async for _ in view.generate(prompt, Sampling(max_tokens=1), affinity="0/verdict"):  # type: ignore[arg-type]  # passed through
            pass
        await view.label_probabilities(prompt, labels, affinity="0/verdict")  # type: ignore[arg-type]  # passed through
    assert seen == ["0/direct.verdict"] * 2 + ["0/sage.verdict"] * 2
