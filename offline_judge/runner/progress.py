"""Where a run stands, computed from its events as they are recorded."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable

from offline_judge.domain.events import (
    AnyEvent,
    CallFinished,
    RoundFinished,
    SampleFinished,
    SampleStarted,
    SearchFinished,
)
from offline_judge.domain.judgment import Outcome
from offline_judge.domain.progress import Progress

_ALARM_FROM = 20
_FINAL = (Outcome.SCORED, Outcome.UNSCORED, Outcome.ERROR)


class Meter:
    """Counts a run's events into its `Progress`.

    Args:
        planned: Samples of the run, reused ones included.
        reused: Samples an earlier process finished.
        reused_unscored: Of these, samples without a verdict.
        time_limit_s: Seconds after which no new sample is taken; None without a limit.
        clock: Monotonic seconds; one that stands still during a pause leaves pauses out of rates.
        paused: Whether there is a pause now.
    """

    def __init__(
        self,
        planned: int,
        *,
        reused: int = 0,
        reused_unscored: int = 0,
        time_limit_s: float | None = None,
        clock: Callable[[], float] = time.monotonic,
        paused: Callable[[], bool] = lambda: False,
    ) -> None:
        self._planned = planned
        self._reused = reused
        self._unscored = reused_unscored
        self._limit = time_limit_s
        self._clock = clock
        self._paused = paused
        self._began: float | None = None
        self._finished = 0
        self._written = 0
        self._write_s = 0.0
        self._read_anew = 0
        self._verdicts: Counter[bool] = Counter()
        self._doing: dict[str, str] = {}

    def event(self, event: AnyEvent) -> None:
        """Count one event."""
        if isinstance(event, SampleStarted):
            self._began = self._clock() if self._began is None else self._began
            self._doing[event.sample_id] = "starting"
        elif isinstance(event, SampleFinished):
            self._sample_finished(event)
        elif isinstance(event, CallFinished):
            self._call_finished(event)
        elif isinstance(event, SearchFinished):
            self.doing(event.sample_id, f"found {len(event.hits)} passages")
        elif isinstance(event, RoundFinished):
            self.doing(event.sample_id, f"finished round {event.round + 1}")

    def doing(self, sample_id: str, doing: str) -> None:
        """Note what is done for a sample now, for people."""
        if sample_id in self._doing:
            self._doing[sample_id] = doing

    def snapshot(self) -> Progress:
        """Where the run stands now."""
        elapsed = 0.0 if self._began is None else self._clock() - self._began
        rate = self._finished / elapsed if elapsed > 0 else 0.0
        return Progress(
            planned=self._planned,
            finished=self._reused + self._finished,
            unscored=self._unscored,
            elapsed_s=elapsed,
            samples_per_minute=60 * rate,
            left_s=self._left(elapsed, rate),
            tokens_per_s=self._written / self._write_s if self._write_s > 0 else 0.0,
            read_anew=self._read_anew,
            in_flight=dict(self._doing),
            paused=self._paused(),
        )

    def alarm(self) -> str:
        """What is wrong with the verdicts as a whole; empty where nothing is.

        A judge that says the same of every sample more likely reads its prompt than the samples.
        """
        if not self._verdicts and self._finished >= _ALARM_FROM:
            return (
                f"None of the {self._finished} samples of this run so far could be scored: see why "
                "with `runs show`, and whether this judge is fit with `judge check`."
            )
        if len(self._verdicts) != 1 or self._verdicts.total() < _ALARM_FROM:
            return ""
        ((verdict, count),) = self._verdicts.items()
        return f"All {count} verdicts of this run so far are `{str(verdict).lower()}`."

    def _left(self, elapsed: float, rate: float) -> float | None:
        if rate <= 0:
            return None
        left = max(0, self._planned - self._reused - self._finished) / rate
        return left if self._limit is None else min(left, max(0.0, self._limit - elapsed))

    def _sample_finished(self, event: SampleFinished) -> None:
        self._doing.pop(event.sample_id, None)
        if event.outcome in _FINAL:
            self._finished += 1
            self._unscored += event.outcome is not Outcome.SCORED
        if event.judgment is not None:
            self._verdicts[event.judgment.verdict] += 1

    def _call_finished(self, event: CallFinished) -> None:
        self.doing(
            event.sample_id, f"{event.stage}: {'taken from the cache' if event.reused else 'done'}"
        )
        if event.reused:
            return
        self._read_anew += event.usage.read_anew
        written, seconds = event.writing
        self._written += written
        self._write_s += seconds
