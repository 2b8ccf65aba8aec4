"""What a watched run comes to: news added up by one thread, read by another."""

from __future__ import annotations

from offline_judge_tui.run_state import LOG, TEXT, RunState

from offline_judge.domain.events import SampleFinished, SampleStarted
from offline_judge.domain.judgment import Outcome
from offline_judge.domain.news import News
from offline_judge.domain.progress import Progress, Slots, TokenDelta
from offline_judge.domain.run_rows import LogLine
from offline_judge.domain.sample import Sample


def delta(call: int, at: int, text: str) -> News:
    return News("delta", delta=TokenDelta(call, "a", 0, "verdict", at, text))


def line(number: int) -> LogLine:
    return LogLine(f"2026-01-01T00:00:{number:04}", "warning", "", f"line {number}")


def test_text_is_put_together_by_call_and_a_late_watcher_sees_that_it_is_late() -> None:
    state = RunState()
    state.take(delta(1, 0, "It is "))
    state.take(delta(1, 6, "so."))
    assert state.writing["a"].text == "It is so."
    state.take(delta(2, 0, "Anew"))
    assert state.writing["a"].text == "Anew"
    late = RunState()
    late.take(delta(7, 120, "end"))
    assert late.writing["a"].text == "… end"
    state.take(delta(2, 4, "x" * 2 * TEXT))
    assert len(state.writing["a"].text) == TEXT


def test_only_samples_that_begin_or_end_change_the_rows() -> None:
    state = RunState()
    sample = Sample(id="a", question="q", response="r")
    state.take(News("event", event=SampleStarted(sample_id="a", sample=sample)))
    state.take(delta(1, 0, "x"))
    state.take(News("progress", progress=Progress(2, 1)))
    assert state.rows == 1
    state.take(News("event", event=SampleFinished(sample_id="a", outcome=Outcome.CANCELLED)))
    assert (state.rows, state.writing) == (2, {})
    assert state.progress == Progress(2, 1)


def test_the_log_before_and_after_is_one_log_of_bounded_length() -> None:
    state = RunState()
    state.take(News("phase", phase="load"), line(2))
    state.begin_log([line(0), line(1), line(2)])
    assert [one.text for one in state.log] == ["line 0", "line 1", "line 2"]
    for number in range(3, LOG + 100):
        state.take(News("phase", phase="load"), line(number))
    assert len(state.log) == LOG
    assert state.log[-1].text == f"line {LOG + 99}"


def test_an_ended_run_writes_nothing_and_has_no_slots() -> None:
    state = RunState()
    state.take(News("slots", slots=Slots(4)))
    state.take(delta(1, 0, "x"))
    before = state.version
    state.end()
    assert state.ended
    assert state.slots is None
    assert state.writing == {}
    assert state.version > before
