"""Clients and handlers for tests of the control socket."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Awaitable, Callable
from typing import Any

from offline_judge.errors import UsageError
from offline_judge.runs.control import ControlServer

RUN = "20260101-000000-aaaa"


class Stops:
    """What the server's commands did."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def drain(self) -> None:
        self.heard.append("drain")

    def cancel(self) -> None:
        raise UsageError("The run is ending already.")

    def status(self) -> dict[str, Any]:
        return {"pid": 7}

    def handlers(self) -> dict[str, Any]:
        return {"drain": self.drain, "cancel": self.cancel, "status": self.status}


class Peer:
    """A client that says what it likes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def say(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def hear(self) -> dict[str, Any]:
        line = await self.reader.readline()
        found: dict[str, Any] = json.loads(line) if line else {}
        return found

    async def subscribe(self) -> None:
        await self.say(b'{"cmd": "subscribe"}\n')
        assert await self.hear() == {"ok": True}


async def stuck_subscriber(server: ControlServer) -> socket.socket:
    """A subscriber that reads no more than the answer."""
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(str(server.path))
    connection.sendall(b'{"cmd": "subscribe"}\n')
    answer = await asyncio.to_thread(connection.recv, len(b'{"ok":true}\n'))
    assert json.loads(answer) == {"ok": True}
    return connection


Peers = Callable[[ControlServer], Awaitable[Peer]]
