"""How a run is asked to stop: the switch, the signals that throw it, and guarded waiting."""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import Any, TypeVar

from offline_judge.protocols import RunListener

T = TypeVar("T")


class Stop(IntEnum):
    """What is asked of a run; it only ever rises."""

    GO = 0
    DRAIN = 1
    CANCEL = 2


class StoppedError(Exception):
    """Work was given up because the switch was thrown. Never leaves the runner."""


class StopSwitch:
    """Asks one run to drain, to cancel or to pause; lives on the run's event loop.

    `drain` takes no new samples and finishes those in flight; `cancel` gives those up too.
    `pause` lets nothing new begin, neither a sample nor a request to the engine, until `go_on`;
    to drain or to cancel ends a pause.

    Args:
        clock: Monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.state = Stop.GO
        self._watchers: list[Callable[[], None]] = []
        self._clock = clock
        self._going = asyncio.Event()
        self._going.set()
        self._paused_at: float | None = None
        self._paused_s = 0.0

    @property
    def paused(self) -> bool:
        """Whether nothing new may begin now."""
        return self._paused_at is not None

    @property
    def paused_s(self) -> float:
        """Seconds of all pauses, one that goes on included."""
        since = 0.0 if self._paused_at is None else self._clock() - self._paused_at
        return self._paused_s + since

    def working_clock(self) -> float:
        """Monotonic seconds that stand still during a pause."""
        now = self._clock() if self._paused_at is None else self._paused_at
        return now - self._paused_s

    def pause(self) -> bool:
        """Let nothing new begin; false where the run is stopping, which a pause would hold up."""
        if self.state is not Stop.GO:
            return False
        if self._paused_at is None:
            self._paused_at = self._clock()
            self._going.clear()
        return True

    def go_on(self) -> None:
        """End a pause; does nothing where there is none."""
        if self._paused_at is not None:
            self._paused_s += self._clock() - self._paused_at
            self._paused_at = None
            self._going.set()

    async def going(self) -> None:
        """Wait until there is no pause."""
        await self._going.wait()

    def drain(self) -> None:
        """Finish the samples in flight and take no new ones."""
        self._raise_to(Stop.DRAIN)

    def cancel(self) -> None:
        """Give up the samples in flight too."""
        self._raise_to(Stop.CANCEL)

    async def guard(self, work: Coroutine[Any, Any, T], *, until: Stop) -> T:
        """Wait for `work`, and cancel it as soon as the switch stands at `until` or above.

        Raises:
            StoppedError: the switch was thrown; `work` has ended.
        """
        task = asyncio.ensure_future(work)

        def check() -> None:
            if self.state >= until:
                task.cancel()

        self._watchers.append(check)
        check()
        try:
            return await task
        except asyncio.CancelledError:
            caller = asyncio.current_task()
            if caller is None or caller.cancelling() or not task.cancelled():
                raise
            if self.state >= until:
                raise StoppedError from None
            # Let through, it would look as if the caller had been cancelled, and end a lane unseen.
            raise RuntimeError("the work cancelled itself") from None
        finally:
            self._watchers.remove(check)

    def _raise_to(self, state: Stop) -> None:
        if state > self.state:
            self.state = state
            self.go_on()
            for watcher in tuple(self._watchers):
                watcher()


@contextmanager
def stop_signals(switch: StopSwitch, listener: RunListener) -> Iterator[None]:
    """Let signals throw the switch while the block runs; does nothing outside the main thread.

    The first SIGINT drains, the second cancels; SIGTERM and SIGHUP cancel. A SIGHUP that the
    caller ignores (nohup) stays ignored.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupted() -> None:
        if switch.state is Stop.GO:
            listener.phase("drain", "finishing samples in flight; interrupt again to give them up")
            switch.drain()
        else:
            cancelled("interrupted again")

    def cancelled(why: str) -> None:
        listener.phase("cancel", f"{why}; samples in flight are given up")
        switch.cancel()

    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, interrupted)
    loop.add_signal_handler(signal.SIGTERM, cancelled, "told to terminate")
    taken = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        loop.add_signal_handler(signal.SIGHUP, cancelled, "the terminal has gone")
        taken.append(signal.SIGHUP)
    try:
        yield
    finally:
        for number in taken:
            loop.remove_signal_handler(number)
