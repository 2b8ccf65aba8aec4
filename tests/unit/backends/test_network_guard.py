"""The guard of conftest.py really closes the network, in every way a client may open it."""

import asyncio
import socket

import httpx
import pytest


def test_a_socket_beyond_loopback_is_refused() -> None:
    with (
        socket.socket(socket.AF_INET, socket.SOCK_STREAM) as client,
        pytest.raises(RuntimeError, match="stay on this machine"),
    ):
        client.connect(("192.0.2.1", 80))


def test_a_datagram_beyond_loopback_is_refused() -> None:
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client,
        pytest.raises(RuntimeError, match="stay on this machine"),
    ):
        client.sendto(b"x", ("192.0.2.1", 53))


async def test_an_http_client_cannot_even_look_up_a_name() -> None:
    async with httpx.AsyncClient(trust_env=False) as client:
        with pytest.raises(RuntimeError, match="do not look up names"):
            await client.get("http://example.org/")


async def test_loopback_stays_open() -> None:
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    async with server:
        _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.close()
        await writer.wait_closed()
