"""Owns one watcher's queue: bounded, so that a watcher that lags can only hurt itself."""

from __future__ import annotations

import asyncio
from dataclasses import asdict, replace

from offline_judge.domain.progress import TokenDelta
from offline_judge.runs.lines import encode

_BYTES = 16 * 1024 * 1024
_FAREWELL_S = 5.0


class Subscriber:
    """Sends one watcher its news, in order, as fast as it takes them.

    Only the newest of several unsent standings is kept, and unsent deltas of one call become one.
    A watcher that lags behind further than the queue holds is told so and dropped.

    Args:
        writer: The watcher's connection.
        limit: Messages it may lag behind.
    """

    def __init__(self, writer: asyncio.StreamWriter, limit: int) -> None:
        self._writer = writer
        self._limit = limit
        self._queue: dict[str | int, bytes | TokenDelta] = {}
        self._bytes = 0
        self._count = 0
        self._ending = False
        self._news = asyncio.Event()

    def offer(self, line: bytes, *, coalesce: str = "") -> None:
        """Queue one line; with `coalesce`, in place of an unsent one of that name."""
        if self._ending:
            return
        self._count += 1
        self._bytes += len(line) - _size(self._queue.pop(coalesce, b""))
        self._put(coalesce or self._count, line)

    def offer_delta(self, delta: TokenDelta) -> None:
        """Queue what an engine wrote, joined to what of the same call is unsent."""
        if self._ending:
            return
        key = f"delta {delta.call}"
        self._bytes += _size(delta)
        waiting = self._queue.get(key)
        if isinstance(waiting, TokenDelta):
            delta = replace(waiting, text=waiting.text + delta.text)
        self._put(key, delta)

    def finish(self) -> None:
        """Take nothing more; `pump` ends once all is sent."""
        self._ending = True
        self._news.set()

    async def pump(self) -> None:
        """Send until `finish`, or until the watcher has gone or is dropped.

        Raises:
            ConnectionError: the watcher has gone.
        """
        while True:
            while self._queue:
                item = self._queue.pop(next(iter(self._queue)))
                self._bytes -= _size(item)
                self._writer.write(item if isinstance(item, bytes) else _line(item))
                await self._writer.drain()
            if self._ending:
                return
            self._news.clear()
            await self._news.wait()

    def _put(self, key: str | int, item: bytes | TokenDelta) -> None:
        self._queue[key] = item
        if len(self._queue) > self._limit or self._bytes > _BYTES:
            self._drop()
        self._news.set()

    def _drop(self) -> None:
        error = f"dropped: this watcher lags more than {self._limit} messages behind the run"
        self._queue = {0: encode({"ok": False, "error": error})}
        self._ending = True
        # A watcher that has stopped reading would keep its connection for ever.
        loop = asyncio.get_running_loop()
        loop.call_later(_FAREWELL_S, self._writer.transport.abort)


def _size(item: bytes | TokenDelta) -> int:
    return len(item) if isinstance(item, bytes) else len(item.text)


def _line(delta: TokenDelta) -> bytes:
    return encode({"delta": asdict(delta)})
