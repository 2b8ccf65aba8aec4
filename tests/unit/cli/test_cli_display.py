from __future__ import annotations

import io
import re

import pytest

from offline_judge.cli.diagnostics import Diagnostics
from offline_judge.cli.display import SHOWN_FAILURES, Display
from offline_judge.cli.screens import LiveScreen, PlainScreen
from offline_judge.domain.events import EngineStarted, SampleFinished, WarningRaised
from offline_judge.domain.judgment import Outcome
from offline_judge.domain.progress import Preflight, Progress
from offline_judge.protocols import RunListener


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def plain(clock: Clock, *, quiet: bool = False) -> Display:
    diagnostics = Diagnostics(quiet=quiet)
    return Display(diagnostics, screen=PlainScreen(diagnostics, clock), clock=clock)


def step(finished: int) -> Progress:
    return Progress(planned=9, finished=finished)


def test_plain_progress_is_a_line_in_ten_seconds_and_the_last_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    clock = Clock()
    with plain(clock) as display:
        for second in range(15):
            clock.now = float(second)
            display.progress(step(second // 2))

    lines = capsys.readouterr().err.splitlines()
    assert [line.split(" ")[0] for line in lines] == ["0/9", "5/9", "7/9"]


def test_progress_that_does_not_move_is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    with plain(clock) as display:
        for second in range(60):
            clock.now = float(second)
            display.progress(step(0 if second < 40 else 1))

    lines = capsys.readouterr().err.splitlines()
    assert [line.split(" ")[0] for line in lines] == ["0/9", "1/9"]


def test_progress_tells_rate_time_left_and_tokens(capsys: pytest.CaptureFixture[str]) -> None:
    with plain(Clock()) as display:
        display.progress(
            Progress(
                planned=40,
                finished=12,
                unscored=1,
                samples_per_minute=3.14,
                left_s=540,
                tokens_per_s=22.04,
                read_anew=13204,
            )
        )

    assert capsys.readouterr().err == (
        "12/40 done, 1 unscored, 3.1/min, 9 min 00 s left, 22.0 tokens/s, 13,204 tokens read\n"
    )


def test_narration_leaves_stdout_alone(capsys: pytest.CaptureFixture[str]) -> None:
    with plain(Clock()) as display:
        display.phase("load", "weights")
        display.progress(step(1))

    assert capsys.readouterr().out == ""


def test_phases_show_the_time_since_the_start(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    display = plain(clock)
    clock.now = 3.25

    display.phase("load", "reading weights")

    assert capsys.readouterr().err == "[3.2 s] load: reading weights\n"


def test_more_about_a_phase_is_told_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    display = plain(clock)
    for second in range(12):
        clock.now = float(second)
        display.phase("corpus", f"{second} documents")
    display.phase("spawn")

    said = [line.partition("] ")[2] for line in capsys.readouterr().err.splitlines()]
    assert said == ["corpus: 0 documents", "corpus: 10 documents", "spawn"]


def test_preflight_names_samples_that_do_not_fit(capsys: pytest.CaptureFixture[str]) -> None:
    too_long = tuple(f"s{i}" for i in range(7))

    plain(Clock()).preflight(Preflight(40, 3, too_long, 4096, 65.0, ("3 reused, because done",)))

    err = capsys.readouterr().err
    assert "40 samples to judge, 3 reused, about 1 min 05 s" in err
    assert "3 reused, because done" in err
    assert "7 samples cannot fit the window of 4,096 tokens" in err
    assert "s0, s1, s2, s3, s4 and 2 more" in err


def test_preflight_says_that_all_samples_fit(capsys: pytest.CaptureFixture[str]) -> None:
    plain(Clock()).preflight(Preflight(12, 0, (), 4096, None))

    assert "12 samples to judge, all fit the window of 4,096 tokens" in capsys.readouterr().err


def test_the_first_interrupt_says_what_the_second_does(capsys: pytest.CaptureFixture[str]) -> None:
    display = plain(Clock())
    display.progress(Progress(planned=9, finished=2, in_flight={"a": "verdict", "b": "query"}))

    display.phase("drain", "whatever")

    err = capsys.readouterr().err
    assert "finishing 2 samples in flight; press Ctrl-C again to cancel" in err


def test_failures_show_as_they_occur_until_there_are_many(
    capsys: pytest.CaptureFixture[str],
) -> None:
    display = plain(Clock())
    for number in range(SHOWN_FAILURES + 3):
        display.event(
            SampleFinished(sample_id=f"s{number}", outcome=Outcome.UNSCORED, reason="off-menu")
        )

    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == SHOWN_FAILURES
    assert lines[0] == "s0 unscored - off-menu"
    assert "only counted" in lines[-1]


def test_quiet_keeps_warnings_and_drops_the_rest(capsys: pytest.CaptureFixture[str]) -> None:
    with plain(Clock(), quiet=True) as display:
        display.phase("load")
        display.progress(step(1))
        display.event(WarningRaised(message="one lane only"))
        display.event(EngineStarted(engine="e", window=1, slots=1, restart=2, reason="crash"))

    assert capsys.readouterr().err.splitlines() == [
        "warning: one lane only",
        "warning: the engine was restarted, number 2 (crash)",
    ]


def test_warnings_cannot_drive_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    plain(Clock()).event(WarningRaised(message="\x1b[2J gone"))

    assert "\x1b" not in capsys.readouterr().err


def test_the_live_bar_shows_counts_and_takes_markup_as_text(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "200")
    stream = Terminal()
    with Display(Diagnostics(), screen=LiveScreen(stream)) as display:
        display.phase("load", "[red]\x1b[2Jweights")
        display.progress(Progress(planned=9, finished=4, in_flight={"[bold]": "verdict"}))
        display.event(WarningRaised(message="[/]"))

    shown = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", stream.getvalue())
    assert "[red]␛[2Jweights" in shown
    assert "4/9 done, 0 unscored" in shown
    assert "[bold]: verdict" in shown
    assert "warning: [/]" in shown
    assert "\x1b[2J" not in stream.getvalue()


def test_a_terminal_that_went_away_does_not_hurt_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    class Gone(Terminal):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    with Display(Diagnostics(), screen=LiveScreen(Gone())) as display:
        display.phase("load")
        display.progress(step(1))

    monkeypatch.setattr("sys.stderr", Gone())
    plain(Clock()).phase("load")


def test_a_display_is_a_run_listener() -> None:
    listener: RunListener = plain(Clock())

    assert listener is not None
