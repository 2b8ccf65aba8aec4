"""Owns the reading of a run's events, from one trace or several."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from offline_judge.domain.events import AnyEvent, parse_event
from offline_judge.errors import StorageError, TraceError
from offline_judge.runs.blobs import BlobStore
from offline_judge.runs.lines import TRACES, damage, read_lines, unfold_texts

_TEXTS_KEPT = 1024


def trace_files(directory: Path) -> list[Path]:
    """The traces of a run, by name."""
    return sorted(directory.glob(TRACES))


def read_events(directory: Path, *, texts: bool = True) -> Iterator[AnyEvent]:
    """All events of a run in the order of their time; also while it is being written.

    Args:
        directory: The run directory.
        texts: Put large texts back; without, they read `blob:HASH`, which is enough to fold
            a run and spares the blobs.

    Raises:
        TraceError: a line is damaged, or names a text that is missing.
        StorageError: a file cannot be read.
    """
    files = trace_files(directory)
    with BlobStore(directory / "blobs.sqlite", readonly=True) as blobs:
        get = lru_cache(_TEXTS_KEPT)(blobs.get) if texts else unread
        streams = [_events(path, get) for path in files]
        yield from heapq.merge(*streams, key=lambda event: event.time)


def to_event(raw: dict[str, Any], get: Callable[[str], str], path: Path, number: int) -> AnyEvent:
    """The event of a line, large texts put back by `get`.

    Raises:
        TraceError: the line holds no event, or names a text that is missing.
    """
    try:
        return parse_event(unfold_texts(raw, get))
    except ValidationError:
        raise damage("a line holds no event", path, number) from None
    except StorageError as error:
        raise TraceError(
            f"A text of the trace cannot be read: {error.message}", where=f"{path}:{number + 1}"
        ) from error


def unread(name: str) -> str:
    """What stands for a large text that was not asked for."""
    return f"blob:{name}"


def _events(path: Path, get: Callable[[str], str]) -> Iterator[AnyEvent]:
    for line in read_lines(path):
        yield to_event(line.raw, get, path, line.number)
