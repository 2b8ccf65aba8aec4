"""One HTTP and server-sent-events client for every server dialect."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any, Literal

import httpx

from offline_judge.errors import BackendCrashedError, BackendResponseError, ContextOverflowError

# Answers that need no generation: they are late only when the server is stuck.
_PLAIN_TIMEOUT_S = 60.0
# Below the five seconds after which the server drops an idle connection, so that no request is
# sent into one that is being dropped.
_KEEP_ALIVE_S = 2.0
_OVERFLOW = "exceed_context_size_error"

Framing = Literal["sse", "lines"]


class Wire:
    """A client of one server: kept-alive connections, key, no proxies, errors in our own tree.

    A stream has no read time-out, because a request may queue: whoever supervises the server
    reads `streams` and `silent_s` instead.
    """

    def __init__(self, address: str, api_key: str, connections: int) -> None:
        self._client = httpx.AsyncClient(
            base_url=address,
            headers={"Authorization": f"Bearer {api_key}"} if api_key else {},
            timeout=httpx.Timeout(_PLAIN_TIMEOUT_S, connect=10.0, pool=None),
            limits=httpx.Limits(max_connections=connections, max_keepalive_connections=connections),
            trust_env=False,
        )
        self.streams = 0
        self._pumps: set[asyncio.Task[None]] = set()
        self._last_event = time.monotonic()

    @property
    def silent_s(self) -> float:
        """Seconds since any open stream brought an event; 0 while none is open."""
        return time.monotonic() - self._last_event if self.streams else 0.0

    async def get(self, path: str) -> Any:
        """JSON of a GET request."""
        return await self._plain("GET", path, None)

    async def post(self, path: str, body: Any) -> Any:
        """JSON of a POST request."""
        return await self._plain("POST", path, body)

    @asynccontextmanager
    async def stream(
        self, path: str, body: Any, framing: Framing = "sse"
    ) -> AsyncIterator[AsyncIterator[dict[str, Any]]]:
        """POST, and iterate over the events' JSON; leaving the context closes the connection.

        `framing` is how events are told apart: server-sent events, or an object a line.

        Raises:
            ContextOverflowError: while iterating: the server says that the prompt does not fit.
            BackendResponseError: another refusal, or an event that is no JSON object.
            BackendCrashedError: the connection broke.
        """
        events: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        # A task of its own reads, so that it is cancelled exactly once: a second cancel while a
        # connection is being closed would leave it open, and the server at work for nobody.
        pump = asyncio.create_task(self._pump(path, body, events, framing))
        self._pumps.add(pump)
        pump.add_done_callback(self._pumps.discard)
        try:
            async with aclosing(_until_end(events, pump)) as iterator:
                yield iterator
        finally:
            pump.cancel()
            await asyncio.wait([pump])
            if not pump.cancelled():
                pump.exception()

    async def close(self) -> None:
        """Drop all connections; streams that are still open break."""
        for pump in self._pumps:
            pump.cancel()
        await asyncio.gather(*self._pumps, return_exceptions=True)
        await self._client.aclose()

    async def _plain(self, method: str, path: str, body: Any) -> Any:
        try:
            response = await self._send(self._client.build_request(method, path, json=body))
            await response.aread()
        except httpx.TransportError as error:
            raise _broken(path, error) from error
        if response.status_code != httpx.codes.OK:
            raise _refusal(path, response)
        try:
            return response.json()
        except ValueError as error:
            raise BackendResponseError(f"No JSON in the answer: {error}", where=path) from error

    async def _send(self, request: httpx.Request) -> httpx.Response:
        """Send, and once more where a kept connection was dropped before any answer."""
        try:
            return await self._client.send(request, stream=True)
        except (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError):
            return await self._client.send(request, stream=True)

    async def _pump(
        self,
        path: str,
        body: Any,
        events: asyncio.Queue[dict[str, Any] | None],
        framing: Framing,
    ) -> None:
        timeout = httpx.Timeout(_PLAIN_TIMEOUT_S, connect=10.0, read=None, pool=None)
        request = self._client.build_request("POST", path, json=body, timeout=timeout)
        if not self.streams:
            self._last_event = time.monotonic()
        self.streams += 1
        try:
            async with aclosing(await self._send(request)) as response:
                if response.status_code != httpx.codes.OK:
                    await response.aread()
                    raise _refusal(path, response)
                async for line in _lines(response):
                    # Comments are sent by a thread of their own and prove no progress.
                    if framing == "lines":
                        field, value = b"data" if line.strip() else b"", line
                    else:
                        field, _, value = line.partition(b":")
                    if field in (b"data", b"error") and value.strip() != b"[DONE]":
                        self._last_event = time.monotonic()
                        events.put_nowait(_event(path, field, value))
        except httpx.TransportError as error:
            raise _broken(path, error) from error
        finally:
            self.streams -= 1
            events.put_nowait(None)


async def _until_end(
    events: asyncio.Queue[dict[str, Any] | None], pump: asyncio.Task[None]
) -> AsyncGenerator[dict[str, Any], None]:
    """Events as they come; then what broke the stream, if anything did."""
    while (event := await events.get()) is not None:
        yield event
    await asyncio.wait([pump])
    if pump.cancelled():
        raise BackendCrashedError("The connection to the engine was closed")
    pump.result()


def _event(path: str, field: bytes, value: bytes) -> dict[str, Any]:
    try:
        event = json.loads(value)
    except ValueError as error:
        raise BackendResponseError(f"An event is no JSON: {error}", where=path) from error
    if not isinstance(event, dict):
        raise BackendResponseError(f"An event is no object: {value!r}", where=path)
    if "error" in event or field == b"error":
        raise _error(path, event.get("error", event), "in the stream")
    return event


async def _lines(response: httpx.Response) -> AsyncGenerator[bytes, None]:
    # Not httpx's own line iterator: that one also splits at U+2028, U+0085 and their like, which
    # a model may well write and the server sends unescaped.
    rest = b""
    async for chunk in response.aiter_bytes():
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line.rstrip(b"\r")


def _refusal(path: str, response: httpx.Response) -> BackendResponseError | ContextOverflowError:
    try:
        error = response.json()["error"]
    except (ValueError, KeyError, TypeError):
        error = response.text[:500]
    return _error(path, error, f"HTTP {response.status_code}", response.status_code)


def _error(
    path: str, error: Any, how: str, status: int = 0
) -> BackendResponseError | ContextOverflowError:
    kind = error.get("type", "") if isinstance(error, dict) else ""
    words = error.get("message", error) if isinstance(error, dict) else error
    if kind == _OVERFLOW:
        return ContextOverflowError(str(words), where=path)
    return BackendResponseError(f"The engine refused ({how}): {words}", where=path, status=status)


def _broken(path: str, error: httpx.TransportError) -> BackendCrashedError:
    words = str(error) or type(error).__name__
    return BackendCrashedError(f"The connection to the engine broke: {words}", where=path)
