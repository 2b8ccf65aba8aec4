"""Running rates of an engine: tokens read and generated a second."""

from __future__ import annotations

from dataclasses import dataclass

from offline_judge.domain.message import Timings, Usage

_DEFAULT_BATCH_S = 1.0


@dataclass
class Rates:
    """Sums over all finished requests."""

    read: int = 0
    read_s: float = 0.0
    generated: int = 0
    generated_s: float = 0.0

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

    def batch_s(self, batch: int) -> float:
        """Seconds one batch takes as measured so far."""
        return batch / self.prompt if self.prompt else _DEFAULT_BATCH_S
