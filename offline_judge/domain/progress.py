"""What a watcher of a run is told while it runs. Standard library only; never written to disk."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True)
class Preflight:
    """What is known before the first sample.

    Attributes:
        planned: Samples to judge now.
        reused: Samples an earlier process of this run finished.
        too_long: Ids of samples whose prompts cannot fit the window.
        window: Tokens one slot holds.
        seconds: Estimated time for all planned samples; None where nothing is known yet.
        notes: Why samples are reused or judged anew, one sentence each.
    """

    planned: int
    reused: int
    too_long: tuple[str, ...]
    window: int
    seconds: float | None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Progress:
    """Where a run stands.

    Attributes:
        planned: Samples of this run, reused ones included.
        finished: Samples with an outcome, reused ones included.
        unscored: Finished samples without a verdict, errors included.
        elapsed_s: Seconds since this process took up its first sample.
        samples_per_minute: Rate of this process; 0 before its first finished sample.
        left_s: Estimated seconds to the end; None before the first finished sample.
        tokens_per_s: Tokens generated a second of engine time.
        read_anew: Prompt tokens the engine has read in this process.
        in_flight: Ids of samples being judged, with what each does now.
        paused: Nothing new is begun until the run is told to go on.
    """

    planned: int
    finished: int
    unscored: int = 0
    elapsed_s: float = 0.0
    samples_per_minute: float = 0.0
    left_s: float | None = None
    tokens_per_s: float = 0.0
    read_anew: int = 0
    in_flight: dict[str, str] = field(default_factory=dict)
    paused: bool = False


@dataclass(frozen=True)
class TokenDelta:
    """Text that the engine has written since the last delta of the same call.

    Attributes:
        call: Numbers the calls of this process; a new number begins a new text.
        sample_id: The sample it is for.
        lane: The lane that judges the sample.
        stage: The stage whose prompt is answered.
        at: Characters of the answer that stand before `text`; what a watcher has not got of
            them, because it came later, is lost to it.
        text: As the engine wrote it, thinking included.
    """

    call: int
    sample_id: str
    lane: int
    stage: str
    at: int
    text: str


@dataclass(frozen=True)
class SlotState:
    """What one busy slot of the engine does now.

    Attributes:
        call: As in `TokenDelta`.
        sample_id: The sample it works for.
        lane: The lane that judges the sample.
        stage: The stage whose prompt it answers.
        doing: It reads the prompt, or writes the answer.
        read: Prompt tokens it has been through, cached ones included.
        of: Tokens of the prompt.
        written: Tokens of the answer so far.
    """

    call: int
    sample_id: str
    lane: int
    stage: str
    doing: Literal["reading", "writing"]
    read: int
    of: int
    written: int = 0


@dataclass(frozen=True)
class Slots:
    """The engine's slots: how many there are, and what those that work do."""

    total: int
    busy: tuple[SlotState, ...] = ()
