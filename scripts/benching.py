"""What the benchmarks share: a bootstrap, and a line on the machine beside each figure."""

from __future__ import annotations

import os
import platform
import random
from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def bootstrap(
    values: Sequence[T], statistic: Callable[[Sequence[T]], float], *, draws: int = 2000
) -> tuple[float, float]:
    """95 % percentile interval of `statistic` over resampled `values`; the seed is fixed."""
    rng = random.Random(0)
    found = sorted(statistic(rng.choices(values, k=len(values))) for _ in range(draws))
    return found[round(0.025 * (draws - 1))], found[round(0.975 * (draws - 1))]


def machine() -> str:
    """Processor, cores and Python, with the load while the figure was taken."""
    load = os.getloadavg()[0]
    return (
        f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, "
        f"load {load:.1f}"
    )
