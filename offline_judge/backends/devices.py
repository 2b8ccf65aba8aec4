"""What an engine says of the devices it may compute on, and of the layers it put there."""

from __future__ import annotations

import re
from collections.abc import Iterable

_OFFLOADED = re.compile(r"offloaded (\d+)/(\d+) layers to GPU")


def offloaded_layers(log: Iterable[str]) -> tuple[int, int] | None:
    """Layers on a GPU, of how many, by llama.cpp's log; None where it says nothing of it."""
    found = [match for line in log if (match := _OFFLOADED.search(line))]
    return (int(found[-1][1]), int(found[-1][2])) if found else None
