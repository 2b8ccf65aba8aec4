"""Looking at this installation and at a judge."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from offline_judge.checks.findings import Finding
    from offline_judge.domain.fitness import Fitness
    from offline_judge.protocols import StartListener
    from offline_judge.settings import Settings


def doctor(
    settings: Settings, *, probe: bool = False, listener: StartListener | None = None
) -> list[Finding]:
    """Everything a run may need, looked at; with `probe` the judge's engine is tried out, too."""
    from offline_judge.checks.doctor import examine

    return examine(settings, probe=probe, listener=listener)


def judge_check(
    settings: Settings,
    *,
    listener: StartListener | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Fitness:
    """Have the judge of the settings make 48 judgments whose answers are known.

    Raises:
        OfflineJudgeError: the judge cannot be had, or its engine fails.
    """
    from offline_judge.checks.known_answers import check_judge

    return check_judge(settings, listener or _silent, progress)


def _silent(phase: str, detail: str = "") -> None:
    """Nobody listens."""
