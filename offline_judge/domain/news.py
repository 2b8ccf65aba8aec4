"""What a watcher of a run is told, one piece at a time. Standard library only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from offline_judge.domain.events import AnyEvent
    from offline_judge.domain.progress import Preflight, Progress, Slots, TokenDelta

NewsKind = Literal["phase", "preflight", "progress", "event", "delta", "slots"]


@dataclass(frozen=True)
class News:
    """One piece; the field of its kind is set, and the others are not.

    Attributes:
        kind: Which it is.
        phase: What the engine or the run does (`spawn`, `load`, `ready`, `drain` ...).
        detail: Of a phase, for people.
        preflight: What is known before the first sample.
        progress: Where the run stands.
        event: What was recorded.
        delta: What the engine wrote.
        slots: What its slots do.
    """

    kind: NewsKind
    phase: str = ""
    detail: str = ""
    preflight: Preflight | None = None
    progress: Progress | None = None
    event: AnyEvent | None = None
    delta: TokenDelta | None = None
    slots: Slots | None = None
