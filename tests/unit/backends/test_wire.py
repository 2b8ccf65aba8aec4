"""The HTTP and SSE client, against a server that says exactly what a test tells it to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from offline_judge.backends.wire import Wire
from offline_judge.errors import BackendCrashedError, BackendResponseError, ContextOverflowError

Reply = bytes | None


class _Cut(bytes):
    """A reply behind which the connection is dropped."""


@asynccontextmanager
async def _serving(*replies: Reply) -> AsyncIterator[tuple[Wire, list[bytes]]]:
    """A wire to a server that gives each request the next reply; None drops the connection."""
    left, seen = list(replies), list[bytes]()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                seen.append(head)
                lengths = [
                    h for h in head.lower().split(b"\r\n") if h.startswith(b"content-length")
                ]
                if lengths:
                    await reader.readexactly(int(lengths[0].split(b":")[1]))
                reply = left.pop(0)
                if reply is None:
                    break
                writer.write(reply)
                await writer.drain()
                if isinstance(reply, _Cut):
                    break
        except asyncio.IncompleteReadError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    wire = Wire(f"http://{host}:{port}", "secret", 2)
    try:
        async with asyncio.timeout(10):
            yield wire, seen
    finally:
        await wire.close()
        server.close()
        await server.wait_closed()


def _http(body: bytes, status: str = "200 OK") -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def _never_ending(body: bytes) -> bytes:
    return f"HTTP/1.1 200 OK\r\nContent-Length: {len(body) + 9}\r\n\r\n".encode() + body


def _cut_short(body: bytes) -> bytes:
    return _Cut(_never_ending(body))


async def _events(wire: Wire) -> list[dict[str, Any]]:
    async with wire.stream("/completion", {"prompt": [1]}) as events:
        return [event async for event in events]


async def test_the_key_is_sent_and_json_comes_back() -> None:
    async with _serving(_http(b'{"tokens":[5]}')) as (wire, seen):
        assert await wire.post("/tokenize", {"content": "x"}) == {"tokens": [5]}
    assert b"authorization: bearer secret" in seen[0].lower()


async def test_events_are_read_and_comments_are_not() -> None:
    body = b': ping\n\ndata: {"a":1}\r\n\r\nevent: x\ndata:{"a":2}\n\ndata: [DONE]\n\n'
    async with _serving(_http(body)) as (wire, _):
        assert await _events(wire) == [{"a": 1}, {"a": 2}]


@pytest.mark.parametrize("mark", ["\u2028", "\u0085", "\x1c", "\u2029"])
async def test_line_marks_of_unicode_do_not_cut_an_event(mark: str) -> None:
    body = f'data: {{"content":"a{mark}b"}}\n\n'.encode()
    async with _serving(_http(body.replace(b"\x1c", b"\\u001c"))) as (wire, _):
        assert await _events(wire) == [{"content": f"a{mark}b"}]


async def test_an_event_may_arrive_in_pieces() -> None:
    body = 'data: {"content":"é"}\n\n'.encode()
    chunks = b"".join(b"1\r\n" + bytes([byte]) + b"\r\n" for byte in body) + b"0\r\n\r\n"
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    async with _serving(head + chunks) as (wire, _):
        assert await _events(wire) == [{"content": "é"}]


async def test_an_overflow_is_told_as_one() -> None:
    body = b'{"error":{"code":400,"type":"exceed_context_size_error","message":"too long"}}'
    async with _serving(_http(body, "400 Bad Request")) as (wire, _):
        with pytest.raises(ContextOverflowError, match="too long"):
            await _events(wire)


async def test_a_refusal_carries_the_servers_words() -> None:
    body = b'{"error":{"code":401,"type":"authentication_error","message":"Invalid API Key"}}'
    async with _serving(_http(body, "401 Unauthorized")) as (wire, _):
        with pytest.raises(BackendResponseError, match=r"HTTP 401.*Invalid API Key"):
            await wire.get("/slots")


@pytest.mark.parametrize(
    "line", [b'data: {"error":{"message":"boom"}}', b'error: {"message":"boom"}']
)
async def test_an_error_inside_the_stream_is_raised(line: bytes) -> None:
    async with _serving(_http(b'data: {"a":1}\n\n' + line + b"\n\n")) as (wire, _):
        with pytest.raises(BackendResponseError, match="boom"):
            await _events(wire)


@pytest.mark.parametrize("line", [b"data: {broken", b"data: [1]"])
async def test_an_event_that_is_no_object_breaks_the_protocol(line: bytes) -> None:
    async with _serving(_http(line + b"\n\n")) as (wire, _):
        with pytest.raises(BackendResponseError, match="An event is no"):
            await _events(wire)


async def test_a_stream_that_breaks_off_is_a_crash() -> None:
    async with _serving(_cut_short(b'data: {"a":1}\n\n'), None, None) as (wire, _):
        with pytest.raises(BackendCrashedError, match="broke"):
            await _events(wire)
        assert wire.streams == 0


async def test_a_kept_connection_that_was_dropped_is_tried_again() -> None:
    async with _serving(_http(b"1"), None, _http(b"2")) as (wire, seen):
        assert await wire.get("/health") == 1
        assert await wire.get("/health") == 2
    assert len(seen) == 3


async def test_a_connection_dropped_twice_is_a_crash() -> None:
    async with _serving(None, None) as (wire, _):
        with pytest.raises(BackendCrashedError):
            await wire.get("/health")


async def test_silence_is_counted_only_while_a_stream_is_open() -> None:
    async with _serving(_never_ending(b'data: {"a":1}\n\n')) as (wire, _):
        assert wire.silent_s == 0
        async with wire.stream("/completion", {}) as events:
            assert await anext(events) == {"a": 1}
            assert wire.silent_s < 0.05
            await asyncio.sleep(0.05)
            assert wire.silent_s >= 0.05
        assert wire.silent_s == 0


async def test_a_stream_breaks_when_the_wire_is_closed_under_it() -> None:
    async with (
        _serving(_never_ending(b'data: {"a":1}\n\n')) as (wire, _),
        wire.stream("/completion", {}) as events,
    ):
        await anext(events)
        await wire.close()
        with pytest.raises(BackendCrashedError, match="closed"):
            await anext(events)


async def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    async with _serving(_http(b"1")) as (wire, _):
        assert await wire.get("/health") == 1


async def test_a_second_cancel_still_closes_the_connection() -> None:
    closed = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n" + b'data: {"a":1}\n\n')
        while await reader.read(100):
            pass
        closed.set()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    wire = Wire(f"http://{host}:{port}", "secret", 2)
    begun = asyncio.Event()

    async def consume() -> None:
        async with wire.stream("/completion", {}) as events:
            async for _ in events:
                begun.set()

    task = asyncio.create_task(consume())
    await begun.wait()
    task.cancel()
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    async with asyncio.timeout(5):
        await closed.wait()
    await wire.close()
    server.close()
    await server.wait_closed()
