"""Running rates of an engine: tokens read and generated a second."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from offline_judge.domain.message import Timings, Usage

_DEFAULT_BATCH_S = 1.0
_RECENT = 64


@dataclass
class Rates:
    """Sums over all finished requests."""

    read: int = 0
    read_s: float = 0.0
    generated: int = 0
    generated_s: float = 0.0
    _gaps: deque[float] = field(default_factory=lambda: deque(maxlen=_RECENT))

    def add(self, usage: Usage, timings: Timings) -> None:
        """Count one request."""
        if timings.prompt_s > 0:
            self.read += usage.read_anew
            self.read_s += timings.prompt_s
        # The first token comes out of reading the prompt.
        if usage.completion_tokens > 1 and timings.generate_s > 0:
            self.generated += usage.completion_tokens - 1
            self.generated_s += timings.generate_s

    @property
    def prompt(self) -> float:
        """Prompt tokens read a second; 0 before any."""
        return self.read / self.read_s if self.read_s > 0 else 0.0

    @property
    def generate(self) -> float:
        """Tokens generated a second; 0 before any."""
        return self.generated / self.generated_s if self.generated_s > 0 else 0.0

    def gap(self, seconds: float) -> None:
        """Count the time between two events of a stream, each at the end of a batch."""
        self._gaps.append(seconds)

    def batch_s(self, batch: int) -> float:
        """Seconds one batch may take: on average, or the slowest of late, whichever is longer."""
        average = batch / self.prompt if self.prompt else _DEFAULT_BATCH_S
        return max(average, *self._gaps, 0.0)
