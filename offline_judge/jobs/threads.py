"""Blocking work that runs an event loop of its own, wherever it is called from."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def outside_event_loop(work: Callable[P, T]) -> Callable[P, T]:
    """Let blocking work run an event loop of its own: inside one (a notebook), in a thread.

    All of it in that thread, since a run's files are used by the thread that opened them.
    """

    @wraps(work)
    def called(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return work(*args, **kwargs)
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(work, *args, **kwargs).result()

    return called
