"""A control server, and what connects to it."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import pytest_asyncio
from control_helpers import RUN, Peer, Peers, Stops

from offline_judge.runs.control import ControlServer


@pytest.fixture
def runtime() -> Iterator[Path]:
    # pytest's own folders are too long for a socket.
    path = Path(tempfile.mkdtemp(prefix="oj-"))
    yield path / "sockets"
    shutil.rmtree(path)


@pytest.fixture
def stops() -> Stops:
    return Stops()


@pytest_asyncio.fixture
async def server(runtime: Path, stops: Stops) -> AsyncIterator[ControlServer]:
    server = ControlServer(runtime, RUN, stops.handlers(), queue_limit=50)
    await server.start()
    yield server
    await server.close()


@pytest_asyncio.fixture
async def peers() -> AsyncIterator[Peers]:
    opened: list[Peer] = []

    async def connect(server: ControlServer) -> Peer:
        opened.append(Peer(*await asyncio.open_unix_connection(server.path, limit=2**24)))
        return opened[-1]

    yield connect
    for peer in opened:
        peer.writer.close()
        with suppress(ConnectionError):
            await peer.writer.wait_closed()
