"""What a watcher of a run is told while it runs. Standard library only; never written to disk."""

from __future__ import annotations

from dataclasses import dataclass, field


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
