from __future__ import annotations

import io
import sys
from dataclasses import dataclass

import pytest

from offline_judge.cli.diagnostics import Diagnostics
from offline_judge.cli.transfer import Transfer


@dataclass(frozen=True)
class Step:
    done: int
    phase: str = "download"
    source: str = "hub x/y"
    note: str = ""
    file: str = "model.gguf"
    total: int = 100_000_000


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_download_tells_bytes_rate_and_source_now_and_then(
    capsys: pytest.CaptureFixture[str],
) -> None:
    clock = Clock()
    with Transfer(Diagnostics(), clock) as transfer:
        for second in range(12):
            clock.now = float(second)
            transfer(Step(done=20_000_000 + second * 2_000_000))

    assert capsys.readouterr().err.splitlines() == [
        "model.gguf: 100.0 MB from hub x/y",
        "  20.0 MB of 100.0 MB",
        "  40.0 MB of 100.0 MB, 2.0 MB/s, 30 s left",
    ]


def test_a_source_that_fails_is_named_and_the_next_one_too(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with Transfer(Diagnostics(), Clock()) as transfer:
        transfer(Step(done=0))
        transfer(Step(done=0, phase="failed", note="\x1b[2Jno route"))
        transfer(Step(done=0, source="packages a to b"))

    err = capsys.readouterr().err
    assert "hub x/y failed: ␛[2Jno route" in err
    assert "from packages a to b" in err


def test_a_terminal_gets_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    with Transfer(Diagnostics(), Clock()) as transfer:
        transfer(Step(done=50_000_000))
        transfer(Step(done=100_000_000, phase="done"))

    assert "50.0 MB of 100.0 MB" in stream.getvalue()
    assert "model.gguf: here, size and hash are right" in stream.getvalue()


def test_quiet_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with Transfer(Diagnostics(quiet=True), Clock()) as transfer:
        transfer(Step(done=1))

    assert capsys.readouterr().err == ""
