"""The control socket: who may use it, what it answers, and that no client can hurt the run."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from runs_helpers import child, finished, searched

from offline_judge.domain.events import AnyEvent, WarningRaised, parse_event
from offline_judge.domain.progress import Preflight, Progress
from offline_judge.errors import RunNotFoundError, StorageError, UsageError
from offline_judge.runs import control as control_module
from offline_judge.runs.control import ControlServer
from offline_judge.runs.control_client import ControlClient
from offline_judge.runs.socket_path import socket_path

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


Peers = Callable[[ControlServer], Awaitable[Peer]]


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


async def _stuck(server: ControlServer) -> socket.socket:
    """A subscriber that reads no more than the answer."""
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(str(server.path))
    connection.sendall(b'{"cmd": "subscribe"}\n')
    answer = await asyncio.to_thread(connection.recv, len(b'{"ok":true}\n'))
    assert json.loads(answer) == {"ok": True}
    return connection


def _mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def _size(path: Path) -> int:
    return path.stat().st_size


def _make(path: Path, mode: int = 0o700, file: str = "") -> None:
    path.mkdir()
    path.chmod(mode)
    if file:
        (path / file).write_text("mine")


def _progress(finished: int) -> Progress:
    return Progress(planned=10, finished=finished)


async def test_only_this_user_reaches_the_socket(server: ControlServer, runtime: Path) -> None:
    assert server.path == runtime / f"{RUN}.sock"
    assert _mode(server.path) == 0o600
    assert _mode(runtime) == 0o700


async def test_an_open_folder_is_closed_to_others(runtime: Path, stops: Stops) -> None:
    _make(runtime, 0o777)
    server = ControlServer(runtime, RUN, stops.handlers())
    await server.start()
    assert _mode(runtime) == 0o700
    await server.close()


def test_a_folder_that_is_not_ours_is_refused_by_both_ends(
    runtime: Path, stops: Stops, tmp_path: Path
) -> None:
    runtime.symlink_to(tmp_path)
    with pytest.raises(StorageError, match="XDG_RUNTIME_DIR"):
        asyncio.run(ControlServer(runtime, RUN, stops.handlers()).start())
    with pytest.raises(StorageError, match="XDG_RUNTIME_DIR"):
        ControlClient(runtime, RUN).status()
    assert list(tmp_path.iterdir()) == []


async def test_another_user_is_refused(
    server: ControlServer, peers: Peers, stops: Stops, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control_module, "peer_uid", lambda connection: os.geteuid() + 1)
    peer = await peers(server)
    await peer.say(b'{"cmd": "drain"}\n')
    assert await peer.hear() == {"ok": False, "error": "this run belongs to another user"}
    assert await peer.hear() == {}
    assert stops.heard == []


def test_the_system_tells_who_is_on_the_other_end() -> None:
    one, other = socket.socketpair()
    with one, other:
        assert control_module.peer_uid(one) == os.geteuid()


def test_a_path_too_long_for_a_socket_is_shortened_the_same_for_both_ends(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 120)
    path = socket_path(deep, RUN)
    assert len(os.fsencode(path)) < 100
    assert path == socket_path(deep, RUN)
    assert path != socket_path(deep, RUN[:-1] + "b")
    assert path != socket_path(tmp_path / ("e" * 120), RUN)


async def test_commands_are_carried_out_and_answered(
    server: ControlServer, stops: Stops, runtime: Path
) -> None:
    client = ControlClient(runtime, RUN)
    await asyncio.to_thread(client.drain)
    assert stops.heard == ["drain"]
    assert await asyncio.to_thread(client.status) == {"pid": 7}
    with pytest.raises(StorageError, match="ending already"):
        await asyncio.to_thread(client.cancel)


async def test_several_commands_may_share_a_connection(server: ControlServer, peers: Peers) -> None:
    peer = await peers(server)
    await peer.say(b'{"cmd":"status"}\n{"cmd":"status"}\n')
    assert [await peer.hear() for _ in range(2)] == [{"ok": True, "pid": 7}] * 2


GARBAGE = {
    "unknown": b'{"cmd": "reboot"}\n',
    "no command": b"{}\n",
    "no object": b"[1]\n",
    "no text": b'{"cmd": 3}\n',
    "no json": b"GET / HTTP/1.1\n",
    "empty": b"\n",
    "bytes": b"\xff\x00\xfe\n",
    "nested": b"[" * 50_000 + b"\n",
    "cut short": b'{"cmd": "sta',
}


@pytest.mark.parametrize("data", GARBAGE.values(), ids=GARBAGE.keys())
async def test_garbage_is_answered_once_and_the_connection_closed(
    server: ControlServer, peers: Peers, data: bytes
) -> None:
    peer = await peers(server)
    await peer.say(data)
    peer.writer.write_eof()
    answer = await peer.hear()
    assert answer["ok"] is False
    assert answer["error"]
    assert await peer.hear() == {}


async def test_a_line_of_ten_megabytes_is_refused_and_the_run_goes_on(
    server: ControlServer, runtime: Path
) -> None:
    def shout() -> bytes:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(server.path))
            with suppress(ConnectionError):
                connection.sendall(b"x" * 10_000_000)
            return connection.recv(1000)

    assert json.loads(await asyncio.to_thread(shout))["ok"] is False
    assert await asyncio.to_thread(ControlClient(runtime, RUN).status) == {"pid": 7}


async def test_a_fault_of_a_handler_stays_with_its_client(
    runtime: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def broken() -> None:
        raise ZeroDivisionError

    server = ControlServer(runtime, RUN, {"drain": broken, "status": lambda: {"pid": 1}})
    await server.start()
    with pytest.raises(StorageError, match="before it answered"):
        await asyncio.to_thread(ControlClient(runtime, RUN).drain)
    assert await asyncio.to_thread(ControlClient(runtime, RUN).status) == {"pid": 1}
    await server.close()


async def test_a_subscriber_sees_how_it_stands_and_then_what_happens(
    server: ControlServer,
    peers: Peers,
) -> None:
    server.phase("load", "weights")
    server.phase("ready")
    server.preflight(Preflight(planned=10, reused=1, too_long=("x",), window=4096, seconds=None))
    server.progress(_progress(3))
    peer = await peers(server)
    await peer.subscribe()
    assert await peer.hear() == {"phase": {"phase": "ready", "detail": ""}}
    assert (await peer.hear())["preflight"]["too_long"] == ["x"]
    assert (await peer.hear())["progress"]["finished"] == 3
    event = searched(text="long " * 1000).model_copy(update={"seq": 4, "time": "2026"})
    server.event(event)
    assert parse_event((await peer.hear())["event"]) == event
    server.progress(_progress(4))
    assert (await peer.hear())["progress"]["finished"] == 4


async def test_all_subscribers_hear_the_same_and_may_leave_at_any_time(
    server: ControlServer,
    peers: Peers,
) -> None:
    watchers = [await peers(server) for _ in range(3)]
    for peer in watchers:
        await peer.subscribe()
    watchers[0].writer.close()
    for number in range(30):
        server.event(WarningRaised(message=str(number)))
        await asyncio.sleep(0)
    for peer in watchers[1:]:
        heard = [(await peer.hear())["event"]["message"] for _ in range(30)]
        assert heard == [str(number) for number in range(30)]


async def test_unsent_progress_is_replaced_by_newer_progress(
    server: ControlServer, peers: Peers
) -> None:
    peer = await peers(server)
    await peer.subscribe()
    for number in range(200):
        server.progress(_progress(number))
    server.event(finished())
    assert (await peer.hear())["progress"]["finished"] == 199
    assert "event" in await peer.hear()


async def _flood(server: ControlServer, number: int) -> None:
    for _ in range(number):
        server.event(searched(text="z" * 20_000))
        await asyncio.sleep(0)


async def test_a_subscriber_that_does_not_read_is_dropped_and_told_and_slows_nobody(
    server: ControlServer, peers: Peers
) -> None:
    quick = await peers(server)
    await quick.subscribe()
    heard = asyncio.create_task(_count(quick, 300))
    with await _stuck(server) as slow:
        loop = asyncio.get_running_loop()
        began = loop.time()
        await _flood(server, 300)
        assert loop.time() - began < 5
        assert await heard == 300
        lines = (await asyncio.to_thread(slow.makefile("rb").read)).splitlines()
    last = json.loads(lines[-1])
    assert last["ok"] is False
    assert "dropped" in last["error"]
    assert len(lines) < 300


async def _count(peer: Peer, number: int) -> int:
    count = 0
    while count < number:
        count += "event" in await peer.hear()
    return count


async def test_a_dropped_subscriber_that_never_reads_loses_its_connection(
    server: ControlServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("offline_judge.runs.subscriber._FAREWELL_S", 0.05)
    with await _stuck(server):
        serving = set(server._connections)
        assert len(serving) == 1
        await _flood(server, 300)
        _, still = await asyncio.wait(serving, timeout=10)
        assert still == set()


async def test_closing_sends_what_is_left_ends_all_and_removes_the_socket(
    server: ControlServer,
    peers: Peers,
) -> None:
    watcher, idle = await peers(server), await peers(server)
    await watcher.subscribe()
    for number in range(40):
        server.event(WarningRaised(message=str(number)))
    await server.close()
    assert await _count(watcher, 40) == 40
    assert await watcher.hear() == {}
    assert await idle.hear() == {}
    assert not server.path.exists()
    await server.close()
    server.event(finished())


async def test_closing_does_not_wait_long_for_one_that_does_not_read(
    server: ControlServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control_module, "_FLUSH_S", 0.05)
    with await _stuck(server):
        await _flood(server, 45)
        async with asyncio.timeout(5):
            await server.close()


async def test_what_json_cannot_say_is_left_out_and_the_run_goes_on(
    server: ControlServer, peers: Peers
) -> None:
    peer = await peers(server)
    await peer.subscribe()
    server.progress(Progress(planned=1, finished=0, tokens_per_s=float("nan")))
    server.progress(_progress(1))
    assert (await peer.hear())["progress"]["finished"] == 1


async def test_what_a_killed_run_left_is_replaced(runtime: Path, stops: Stops) -> None:
    _make(runtime)
    script = "import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])"
    with child(script, runtime / f"{RUN}.sock"):
        pass
    client = ControlClient(runtime, RUN)
    with pytest.raises(RunNotFoundError, match=f"not running.*resume {RUN}"):
        client.status()
    server = ControlServer(runtime, RUN, stops.handlers())
    await server.start()
    assert await asyncio.to_thread(client.status) == {"pid": 7}
    await server.close()


async def test_a_file_that_is_no_socket_is_left_alone(runtime: Path, stops: Stops) -> None:
    _make(runtime, file=f"{RUN}.sock")
    with pytest.raises(StorageError, match="control socket"):
        await ControlServer(runtime, RUN, stops.handlers()).start()
    assert _size(runtime / f"{RUN}.sock") == 4


def test_a_run_nobody_serves_is_not_running(runtime: Path) -> None:
    for call in (ControlClient(runtime, RUN).cancel, ControlClient(runtime, RUN).subscribe):
        with pytest.raises(RunNotFoundError, match="is not running"):
            call()


def test_a_run_that_does_not_answer_is_given_up(runtime: Path) -> None:
    runtime.mkdir()
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(runtime / f"{RUN}.sock"))
        silent.listen()
        with pytest.raises(StorageError, match="does not answer"):
            ControlClient(runtime, RUN, answer_s=0.05).status()


async def test_a_client_watches_until_the_run_ends(server: ControlServer, runtime: Path) -> None:
    events: list[AnyEvent] = []
    subscribed = asyncio.Event()
    loop = asyncio.get_running_loop()

    def watch() -> None:
        with ControlClient(runtime, RUN).subscribe() as messages:
            loop.call_soon_threadsafe(subscribed.set)
            events.extend(parse_event(message["event"]) for message in messages)

    watching = asyncio.create_task(asyncio.to_thread(watch))
    await subscribed.wait()
    sent = [finished("a"), finished("b")]
    for event in sent:
        server.event(event)
    await server.close()
    await watching
    assert events == sent


async def test_a_client_that_was_dropped_is_told(server: ControlServer, runtime: Path) -> None:
    messages = await asyncio.to_thread(ControlClient(runtime, RUN).subscribe)
    await _flood(server, 300)
    with messages, pytest.raises(StorageError, match="dropped"):
        await asyncio.to_thread(list, messages)
