"""A server that somebody else runs: looked at, asked, waited for, never started or ended."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from offline_judge.backends.options import EngineOptions
from offline_judge.backends.wire import Wire
from offline_judge.errors import (
    BackendCrashedError,
    BackendError,
    BackendResponseError,
    BackendStartError,
)
from offline_judge.protocols import StartListener

_FIRST_BACK_OFF_S = 0.5
_MOST_FAILURES = 6
_CONNECTIONS_BESIDE = 6


class RunningServer:
    """The server at an address; it counts as up once one of its paths answers.

    Args:
        options: Its address and key, and how it is asked.
        paths: Paths of which one must answer, tried in this order.
        product: What it is called in messages.
        back_off_s: First pause while it is waited for; each further one is twice as long.
    """

    def __init__(
        self,
        options: EngineOptions,
        paths: Sequence[str],
        product: str,
        *,
        back_off_s: float = _FIRST_BACK_OFF_S,
    ) -> None:
        self.options = options
        self.version = ""
        self.address = options.base_url
        self.api_key = options.api_key
        self.start_s = 0.0
        self.restarts = 0
        self.offloaded: tuple[int, int] | None = None
        self._paths = paths
        self._product = product
        self._back_off_s = back_off_s
        self._listener: StartListener = _silent
        self._wire: Wire | None = None
        self._lock = asyncio.Lock()
        self._up = False
        self._failures = 0
        self._reason = ""
        self._closed = False

    async def start(self, listener: StartListener) -> None:
        """Look whether it is there.

        Raises:
            BackendStartError: nothing answers, or not as the product does.
        """
        self._listener = listener
        self._closed = False
        begun = time.monotonic()
        listener("connect", f"{self._product} at {self.options.base_url}")
        async with self._lock:
            self._wire = Wire(
                self.options.base_url,
                self.options.api_key,
                self.options.slots + _CONNECTIONS_BESIDE,
            )
            await self._look(self._wire)
        self.start_s = time.monotonic() - begun

    async def wire(self) -> Wire:
        """A wire to the server, once it answers.

        Raises:
            BackendStartError: it did not come back.
        """
        if self._closed or self._wire is None:
            raise BackendCrashedError("The connection to the server was closed")
        if self._up:
            return self._wire
        async with self._lock:
            if not self._up:
                await self._wait_for(self._wire)
        return self._wire

    def succeeded(self) -> None:
        """A request was finished: earlier failures no longer count."""
        self._failures = 0

    async def crashed(self, error: BackendCrashedError, wire: Wire) -> BackendCrashedError:
        """Take note of a broken connection: the next request waits until the server answers."""
        if wire is self._wire and not self._closed:
            self._up = False
            self._reason = error.message
        return BackendCrashedError(
            f"{self._product} at {self.options.base_url} broke off: {error.message}",
            where=error.where,
            remedy="It is waited for before the next request.",
        )

    async def restart(self, reason: str) -> None:
        """It is not ours to restart; whoever asks it next looks first whether it answers."""
        self._up = False
        self._reason = reason

    async def close(self) -> None:
        """Drop the connections. Safe to call twice."""
        self._closed = True
        if self._wire is not None:
            await self._wire.close()
            self._wire = None

    async def _wait_for(self, wire: Wire) -> None:
        """Wait until it answers again; the caller holds the lock."""
        reason = self._reason
        while self._failures < _MOST_FAILURES:
            self._listener("waiting", f"for {self._product} at {self.options.base_url}: {reason}")
            await asyncio.sleep(self._back_off_s * 2**self._failures)
            self._failures += 1
            try:
                await self._look(wire)
            except BackendStartError as error:
                reason = error.message
                continue
            self.restarts += 1
            self._listener("restart", f"{self._product} is back: {self._reason}")
            return
        raise BackendStartError(
            f"{self._product} at {self.options.base_url} did not come back "
            f"in {self._failures} tries: {reason}",
            remedy="Start it again, then `offline-judge resume RUN`.",
        )

    async def _look(self, wire: Wire) -> None:
        problem: BackendError | None = None
        for path in self._paths:
            try:
                told = await wire.get(path)
            except BackendResponseError as error:
                # It is there; this path is not, or the key is wrong.
                problem = error
            except BackendCrashedError as error:
                raise BackendStartError(
                    f"Nothing answers at {self.options.base_url}, where {self._product} was "
                    f"looked for: {error.message}",
                    remedy="Start it, or name its address with --base-url.",
                ) from error
            else:
                self._up = True
                if isinstance(told, dict):
                    version = told.get("version") or told.get("build_info")
                    self.version = str(version or self.version)
                return
        raise BackendStartError(
            f"What answers at {self.options.base_url} is not {self._product} as it is known "
            f"here: {problem}",
            remedy="Check --base-url and the key.",
        )


def _silent(phase: str, detail: str = "") -> None:
    """Stands in until `start` brings a listener."""
