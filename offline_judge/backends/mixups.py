"""Looks from time to time whether answers of two requests get mixed up."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from offline_judge.errors import BackendCrashedError, BackendResponseError

CALLS_BETWEEN_CHECKS = 200


class MixUpWatch:
    """Checks every 200 finished calls; what it finds is raised at the next request.

    Args:
        check: Raises `BackendStartError` where two requests got each other's answers.
    """

    def __init__(self, check: Callable[[], Awaitable[None]]) -> None:
        self._check = check
        self._next = CALLS_BETWEEN_CHECKS
        self._task: asyncio.Task[None] | None = None

    def finished(self, calls: int) -> None:
        """So many calls are finished by now: begin a check where one is due."""
        if calls >= self._next and self._task is None:
            self._next = calls + CALLS_BETWEEN_CHECKS
            self._task = asyncio.create_task(self._run())

    def raise_found(self) -> None:
        """Raise what the last check found."""
        if self._task is not None and self._task.done():
            # A check that the engine did not live through says nothing about mix-ups.
            with suppress(BackendCrashedError, BackendResponseError):
                self._task.result()
            self._task = None

    async def close(self) -> None:
        """Stop a check that is under way. Safe to call twice."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    async def _run(self) -> None:
        await self._check()
