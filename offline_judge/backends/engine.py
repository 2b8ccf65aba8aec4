"""Keeps one engine's child up: start, crash, restart with back-off, stall, end."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time

from offline_judge.backends.devices import offloaded_layers
from offline_judge.backends.options import EngineOptions
from offline_judge.backends.process import ChildProcess
from offline_judge.backends.serving import Launcher
from offline_judge.backends.wire import Wire
from offline_judge.errors import BackendCrashedError, BackendError, BackendStartError
from offline_judge.protocols import StartListener

_FIRST_BACK_OFF_S = 0.5
_MOST_FAILURES = 5
_DEATH_S = 2.0
_MOST_AMENDMENTS = 2


class Engine:
    """The child, its wire, and the one lock under which it is started again.

    Args:
        options: The model and the engine's sizes.
        launcher: How its child is begun.
    """

    def __init__(self, options: EngineOptions, launcher: Launcher) -> None:
        self.options = options
        self.version = ""
        self.address = ""
        self.start_s = 0.0
        self.restarts = 0
        self.stall_s = options.stall_s
        self.offloaded: tuple[int, int] | None = None
        self._launcher = launcher
        self._listener: StartListener = _silent
        self._child: ChildProcess | None = None
        self._wire: Wire | None = None
        self.api_key = ""
        self._lock = asyncio.Lock()
        self._watchdog: asyncio.Task[None] | None = None
        self._revival: asyncio.Task[None] | None = None
        self._failures = 0
        self._reason = ""
        self._closed = False

    @property
    def connections(self) -> int:
        """Connections the client may keep: one a slot, and some for counting and control."""
        return self.options.slots + 6

    @property
    def child(self) -> ChildProcess | None:
        """The present child, for tests and diagnostics."""
        return self._child

    async def start(self, listener: StartListener) -> None:
        """Bring the child up for the first time.

        Raises:
            BackendStartError: it did not come up.
        """
        self._listener = listener
        self._closed = False
        async with self._lock:
            await self._first_launch()
        self._watchdog = asyncio.create_task(self._watch())

    async def wire(self) -> Wire:
        """A wire to a child that is up, once it is.

        Raises:
            BackendStartError: it crashed too often without one finished request between.
        """
        if self._up():
            assert self._wire is not None
            return self._wire
        async with self._lock:
            if not self._up():
                await self._revive()
            assert self._wire is not None
            return self._wire

    def succeeded(self) -> None:
        """A request was finished: earlier crashes no longer count against the child."""
        self._failures = 0

    async def crashed(self, error: BackendCrashedError, wire: Wire) -> BackendCrashedError:
        """Make sure that a child whose connection broke is gone, and start it again.

        Gives the error to raise, with what the child said last.

        Args:
            error: What was seen on the wire.
            wire: The wire it was seen on; one of an earlier child says nothing of this one.
        """
        child = self._child
        if child is None or wire is not self._wire or self._closed:
            return error
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(child.wait(), _DEATH_S)
        # A child that lives on after a broken stream is in no known state.
        child.kill()
        await child.wait()
        reason = self._reason or child.exit_text
        self._start_revival(reason)
        return BackendCrashedError(
            f"The engine died while it answered ({reason}): {error.message}",
            where=child.last_words(),
            remedy="It is started again for the next request.",
        )

    async def restart(self, reason: str) -> None:
        """Kill the child and start it again in the background."""
        self._reason = reason
        if self._child is not None and not self._closed:
            self._child.kill()
            await self._child.wait()
            self._start_revival(reason)

    async def close(self) -> None:
        """End the child and everything that watches it. Safe to call twice."""
        self._closed = True
        tasks = [task for task in (self._watchdog, self._revival) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._watchdog = self._revival = None
        await self._let_go(graceful=True)

    def _up(self) -> bool:
        return self._wire is not None and self._child is not None and self._child.alive

    def _start_revival(self, reason: str) -> None:
        self._reason = reason
        if self._revival is None or self._revival.done():
            self._revival = asyncio.create_task(self._revive_in_background())

    async def _revive_in_background(self) -> None:
        # Whoever asks for the wire next meets the same failure and reports it.
        with contextlib.suppress(BackendError):
            await self.wire()

    async def _revive(self) -> None:
        """Start the child again; the caller holds the lock."""
        if self._closed:
            raise BackendCrashedError("The engine was closed")
        assert self._child is not None, "started before it is used"
        reason = self._reason or self._child.exit_text
        while self._failures < _MOST_FAILURES:
            self._listener("restart", reason)
            await asyncio.sleep(_FIRST_BACK_OFF_S * 2**self._failures)
            self._failures += 1
            try:
                await self._launch()
            except BackendStartError as error:
                reason = error.message
                continue
            self.restarts += 1
            self._reason = ""
            return
        words = self._child.first_errors() if self._child else ""
        raise BackendStartError(
            f"The engine failed {self._failures} times without one finished request: {reason}",
            where=words,
        )

    async def _first_launch(self) -> None:
        """Launch, and once more with what the engine itself says would fit."""
        for left in range(_MOST_AMENDMENTS, -1, -1):
            try:
                await self._launch()
            except BackendStartError:
                log = self._child.log if self._child else ()
                amended, why = self._launcher.amended(self.options, log)
                if not left or amended == self.options:
                    raise
                self._listener("amend", why)
                self.options = amended
            else:
                return

    async def _launch(self) -> None:
        await self._let_go(graceful=False)
        begun = time.monotonic()
        self.api_key = secrets.token_urlsafe(24)
        spec = self._launcher.spec(self.options, self.api_key, self.connections)
        self._child = ChildProcess(spec)
        ready = await self._child.start(self._listener)
        self.version, self.address = str(ready.get("version", "")), str(ready["address"])
        self.offloaded = offloaded_layers(self._child.log)
        self._wire = Wire(self.address, self.api_key, self.connections)
        self.start_s = time.monotonic() - begun

    async def _let_go(self, *, graceful: bool) -> None:
        if self._wire is not None:
            await self._wire.close()
            self._wire = None
        if self._child is not None:
            await self._child.stop(graceful=graceful)

    async def _watch(self) -> None:
        """Kill a child that has gone silent: its streams then break and say so."""
        while True:
            await asyncio.sleep(self.stall_s / 8)
            wire, child = self._wire, self._child
            if wire and child and child.alive and wire.silent_s > self.stall_s:
                self._reason = f"no sign of life for {wire.silent_s:.0f} s"
                child.kill()


def _silent(phase: str, detail: str = "") -> None:
    """Stands in until `start` brings a listener."""
