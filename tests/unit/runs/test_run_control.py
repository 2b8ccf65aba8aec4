"""The control socket: who may use it, and what it answers."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from contextlib import suppress
from pathlib import Path

import pytest
from control_helpers import RUN, Peers, Stops
from runs_helpers import child

from offline_judge.errors import RunNotFoundError, StorageError
from offline_judge.runs import control as control_module
from offline_judge.runs.control import ControlServer
from offline_judge.runs.control_client import ControlClient
from offline_judge.runs.socket_path import socket_path

# Not a conftest.py: the type checker knows modules by their names, and there is one already.
pytest_plugins = ("control_fixtures",)


def _mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def _size(path: Path) -> int:
    return path.stat().st_size


def _make(path: Path, mode: int = 0o700, file: str = "") -> None:
    path.mkdir()
    path.chmod(mode)
    if file:
        (path / file).write_text("mine")


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
