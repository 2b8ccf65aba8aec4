"""Owns the control socket of a run: watchers attach and leave, others pause, drain or cancel."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import struct
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from offline_judge.domain.events import AnyEvent
from offline_judge.domain.progress import Preflight, Progress, Slots, TokenDelta
from offline_judge.errors import OfflineJudgeError, StorageError
from offline_judge.protocols import RunListener
from offline_judge.runs.control_client import ControlClient
from offline_judge.runs.lines import encode
from offline_judge.runs.socket_path import make_private_directory, socket_path
from offline_judge.runs.subscriber import Subscriber

__all__ = ["ControlClient", "ControlServer", "Handler"]

Handler = Callable[[], Mapping[str, Any] | None]
"""Does what a command asks, at once; what it returns is added to the answer."""

SUBSCRIBE = "subscribe"
_STANDING = ("phase", "preflight", "progress")
"""What a new subscriber is told as it stands."""
_NEWEST = ("progress", "slots")
"""Of these only the newest matters."""
_LONGEST_COMMAND = 64 * 1024
_FLUSH_S = 1.0


class ControlServer:
    """Serves one run's socket; a `RunListener`, whose news go to all subscribers.

    The protocol is JSON lines. A client sends `{"cmd": NAME}`. `subscribe` is answered by
    `{"ok": true}` and a stream of `{"phase": ...}`, `{"preflight": ...}`, `{"progress": ...}`
    (first as they stand), `{"event": ...}`, `{"slots": ...}` and `{"delta": ...}`. Every other
    command is answered by one line, `{"ok": true, ...}` or `{"ok": false, "error": ...}`. After an
    error the connection is closed. No client can slow the run or fail it.

    Args:
        runtime_path: Where sockets lie; made for this user only.
        run_id: Names the socket.
        handlers: Command to what it does, such as `pause`, `drain`, `cancel`, `status`.
        queue_limit: Messages a subscriber may lag behind before it is dropped.
    """

    def __init__(
        self,
        runtime_path: os.PathLike[str],
        run_id: str,
        handlers: Mapping[str, Handler],
        *,
        queue_limit: int = 1000,
    ) -> None:
        self.path = socket_path(runtime_path, run_id)
        self._handlers = dict(handlers)
        self._queue_limit = queue_limit
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[Any]] = set()
        self._subscribers: dict[Subscriber, asyncio.Task[None]] = {}
        self._standing: dict[str, bytes] = {}

    async def start(self) -> None:
        """Begin to serve; what a dead run left of its socket is replaced.

        Raises:
            StorageError: the socket cannot be made.
        """
        make_private_directory(self.path.parent)
        listening = self._bind()
        try:
            self._server = await asyncio.start_unix_server(
                self._connected, sock=listening, limit=_LONGEST_COMMAND
            )
        except BaseException:
            listening.close()
            raise

    async def close(self) -> None:
        """Send subscribers what is left, within a second, and let go. Safe to call twice."""
        server, self._server = self._server, None
        if server is None:
            return
        with suppress(OSError):
            self.path.unlink()
        server.close()
        for subscriber in self._subscribers:
            subscriber.finish()
        if self._subscribers:
            await asyncio.wait(self._subscribers.values(), timeout=_FLUSH_S)
        connections = tuple(self._connections)
        for connection in connections:
            connection.cancel()
        await asyncio.gather(*connections, return_exceptions=True)

    def phase(self, phase: str, detail: str = "") -> None:
        """Tell subscribers of a phase."""
        self._publish("phase", {"phase": phase, "detail": detail})

    def preflight(self, report: Preflight) -> None:
        """Tell subscribers what is known before the first sample."""
        self._publish("preflight", asdict(report))

    def progress(self, progress: Progress) -> None:
        """Tell subscribers where the run stands."""
        self._publish("progress", asdict(progress))

    def event(self, event: AnyEvent) -> None:
        """Tell subscribers of an event."""
        if self._subscribers:
            self._publish("event", event.model_dump())

    @property
    def watched(self) -> bool:
        """Whether anybody has subscribed."""
        return bool(self._subscribers)

    def slots(self, slots: Slots) -> None:
        """Tell subscribers what the engine's slots do."""
        self._publish("slots", asdict(slots))

    def delta(self, delta: TokenDelta) -> None:
        """Tell subscribers what the engine wrote."""
        for subscriber in self._subscribers:
            subscriber.offer_delta(delta)

    def _publish(self, kind: str, content: Mapping[str, Any]) -> None:
        try:
            line = encode({kind: content})
        except (TypeError, ValueError):
            # What JSON cannot say is no reason to end a run.
            return
        if kind in _STANDING:
            self._standing[kind] = line
        for subscriber in self._subscribers:
            subscriber.offer(line, coalesce=kind if kind in _NEWEST else "")

    def _bind(self) -> socket.socket:
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            if self.path.is_socket():
                self.path.unlink()
            listening.bind(str(self.path))
            self.path.chmod(0o600)
        except OSError as error:
            listening.close()
            raise StorageError(
                f"Cannot make the run's control socket: {error.strerror or error}",
                where=str(self.path),
            ) from error
        return listening

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._connections.add(task)
            task.add_done_callback(self._connections.discard)
        # A client that goes away is no fault of the run.
        with suppress(ConnectionError):
            try:
                await self._serve(reader, writer)
            finally:
                writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer commands until the client leaves, subscribes or makes a mistake."""
        answer: Mapping[str, Any] = {"ok": True}
        while answer["ok"]:
            try:
                line = await reader.readline()
            except ValueError:
                await _answer(writer, _refusal("a command is one short line"))
                return
            if not line:
                return
            # Not before: a connection closed with something unread loses the answer.
            if not _is_allowed(writer.get_extra_info("socket")):
                await _answer(writer, _refusal("this run belongs to another user"))
                return
            command = _parse(line)
            if command == SUBSCRIBE:
                await self._subscribe(reader, writer)
                return
            answer = self._obey(command)
            await _answer(writer, answer)

    def _obey(self, command: str | None) -> Mapping[str, Any]:
        if command is None:
            return _refusal('a command is one line of JSON such as {"cmd": "status"}')
        handler = self._handlers.get(command)
        if handler is None:
            known = ", ".join([SUBSCRIBE, *self._handlers])
            return _refusal(f"unknown command {command[:40]!r}; known: {known}")
        try:
            return {"ok": True, **(handler() or {})}
        except OfflineJudgeError as error:
            return _refusal(str(error))

    async def _subscribe(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        subscriber = Subscriber(writer, self._queue_limit)
        subscriber.offer(encode({"ok": True}))
        for kind in _STANDING:
            if kind in self._standing:
                subscriber.offer(self._standing[kind])
        pump = asyncio.create_task(subscriber.pump())
        gone = asyncio.create_task(_until_gone(reader))
        self._subscribers[subscriber] = pump
        try:
            await asyncio.wait({pump, gone}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            del self._subscribers[subscriber]
            pump.cancel()
            gone.cancel()
            await asyncio.gather(pump, gone, return_exceptions=True)


async def _answer(writer: asyncio.StreamWriter, answer: Mapping[str, Any]) -> None:
    writer.write(encode(dict(answer)))
    await writer.drain()


async def _until_gone(reader: asyncio.StreamReader) -> None:
    """Wait until a subscriber leaves; what it still says is not listened to."""
    while await reader.read(_LONGEST_COMMAND):
        continue


def _refusal(why: str) -> dict[str, Any]:
    return {"ok": False, "error": why}


def _parse(line: bytes) -> str | None:
    try:
        command = json.loads(line)["cmd"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return command if isinstance(command, str) else None


def _is_allowed(connection: socket.socket) -> bool:
    """Whether the client is this user or root; a system that cannot tell has the file's mode."""
    uid = peer_uid(connection)
    return uid is None or uid in (os.geteuid(), 0)


def peer_uid(connection: socket.socket) -> int | None:
    """The user on the other end of a Unix socket; None where the system does not tell."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return None
    form = struct.Struct("3i")
    _, uid, _ = form.unpack(connection.getsockopt(socket.SOL_SOCKET, option, form.size))
    return int(uid)


LISTENER: type[RunListener] = ControlServer
