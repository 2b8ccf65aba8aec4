"""What it takes to run a server that is not ours: a warden, a port, a look at its health."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx

from offline_judge.backends.process import Message

WARDEN = Path(__file__).with_name("warden.py")
_ASK_S = 5.0


async def healthy(
    address: str, api_key: str, found: Mapping[str, Any], more: str = ""
) -> Message | None:
    """`found` once the server says that it is well; None before.

    Args:
        address: The server's.
        api_key: Its key.
        found: What is given back.
        more: A path whose JSON object is given back, too.
    """
    headers = {"Authorization": f"Bearer {api_key}"}
    try:
        async with httpx.AsyncClient(
            base_url=address, headers=headers, trust_env=False, timeout=_ASK_S
        ) as client:
            answer = await client.get("/health")
            if answer.status_code != httpx.codes.OK:
                return None
            told = (await client.get(more)).json() if more else {}
    except (httpx.HTTPError, ValueError):
        return None
    return {**told, **found}


def free_port() -> int:
    """A port of loopback that nobody listens on now."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port
