"""Progress: what it counts, what it leaves out, and what it refuses to guess."""

from __future__ import annotations

from typing import Any

from offline_judge.domain.events import CallFinished, SampleFinished, SampleStarted
from offline_judge.domain.judgment import Judgment, Outcome
from offline_judge.domain.message import Timings, Usage
from offline_judge.domain.sample import Sample
from offline_judge.runner.progress import Meter


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def _meter(clock: Clock, **kwargs: Any) -> Meter:
    return Meter(10, clock=clock, **kwargs)


def _start(meter: Meter, name: str) -> None:
    sample = Sample(id=name, question="q", response="r")
    meter.event(SampleStarted(sample_id=name, sample=sample))


def _end(meter: Meter, name: str, outcome: Outcome = Outcome.SCORED) -> None:
    meter.event(SampleFinished(sample_id=name, outcome=outcome))


def _call(name: str, reused: bool = False) -> CallFinished:
    return CallFinished(
        sample_id=name,
        stage="verdict",
        template="verdict",
        template_hash="h",
        prompt_hash="p",
        usage=Usage(prompt_tokens=100, cached_tokens=60, completion_tokens=20),
        timings=Timings(prompt_s=1, generate_s=2),
        reused=reused,
    )


def test_nothing_is_estimated_before_the_first_finished_sample() -> None:
    meter = _meter(Clock())
    _start(meter, "a")
    progress = meter.snapshot()
    assert progress.left_s is None
    assert progress.samples_per_minute == 0
    assert progress.in_flight == {"a": "starting"}


def test_rate_and_time_left_count_only_what_this_process_judged() -> None:
    clock = Clock()
    meter = _meter(clock, reused=4, reused_unscored=1)
    _start(meter, "a")
    clock.now += 30
    _end(meter, "a")
    progress = meter.snapshot()
    assert progress.finished == 5
    assert progress.unscored == 1
    assert progress.samples_per_minute == 2
    assert progress.left_s == 150


def test_time_left_is_never_more_than_the_time_limit_leaves() -> None:
    clock = Clock()
    meter = _meter(clock, time_limit_s=40.0)
    _start(meter, "a")
    clock.now += 30
    _end(meter, "a")
    assert meter.snapshot().left_s == 10


def test_errors_count_as_unscored_and_cancelled_samples_as_not_finished() -> None:
    meter = _meter(Clock())
    for name, outcome in (("a", Outcome.ERROR), ("b", Outcome.UNSCORED), ("c", Outcome.CANCELLED)):
        _start(meter, name)
        _end(meter, name, outcome)
    progress = meter.snapshot()
    assert (progress.finished, progress.unscored, progress.in_flight) == (2, 2, {})


def test_completions_from_the_cache_are_not_counted_as_the_engines_work() -> None:
    meter = _meter(Clock())
    meter.event(_call("a"))
    meter.event(_call("a", reused=True))
    progress = meter.snapshot()
    assert progress.read_anew == 40
    assert progress.tokens_per_s == 10


def test_a_reading_of_labels_has_no_rate_of_writing() -> None:
    meter = _meter(Clock())
    _start(meter, "a")
    reading = _call("a").model_copy(
        update={
            "masses": {"true": 1.0},
            "usage": Usage(prompt_tokens=100, completion_tokens=1),
            "timings": Timings(prompt_s=1, generate_s=1e-6),
        }
    )
    meter.event(reading)
    assert meter.snapshot().tokens_per_s == 0
    assert meter.snapshot().read_anew == 100


def test_what_is_done_for_a_sample_is_told_while_it_is_judged() -> None:
    meter = _meter(Clock())
    _start(meter, "a")
    meter.doing("a", "verdict: reading 12 of 40 tokens")
    meter.doing("b", "of a sample that nobody took up")
    assert meter.snapshot().in_flight == {"a": "verdict: reading 12 of 40 tokens"}


def test_a_pause_is_told() -> None:
    assert not _meter(Clock()).snapshot().paused
    assert _meter(Clock(), paused=lambda: True).snapshot().paused


def _verdict(meter: Meter, name: str, verdict: bool) -> None:
    judgment = Judgment(verdict=verdict, probability=float(verdict))
    meter.event(SampleFinished(sample_id=name, outcome=Outcome.SCORED, judgment=judgment))


def test_a_judge_that_always_says_the_same_raises_the_alarm() -> None:
    meter = _meter(Clock())
    for number in range(19):
        _verdict(meter, str(number), True)
    assert meter.alarm() == ""
    _verdict(meter, "19", True)
    assert "All 20 verdicts" in meter.alarm()
    _verdict(meter, "20", False)
    assert meter.alarm() == ""


def test_a_run_in_which_nothing_could_be_scored_raises_the_alarm() -> None:
    meter = _meter(Clock())
    for number in range(20):
        assert meter.alarm() == ""
        meter.event(SampleFinished(sample_id=str(number), outcome=Outcome.UNSCORED))
    assert "None of the 20 samples" in meter.alarm()
    _verdict(meter, "20", True)
    assert meter.alarm() == ""
