"""Watchers of a run: what they are told, and that a slow one hurts only itself."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from control_helpers import RUN, Peer, Peers, stuck_subscriber
from runs_helpers import finished, searched

from offline_judge.domain.events import AnyEvent, WarningRaised, parse_event
from offline_judge.domain.progress import Preflight, Progress, Slots, TokenDelta
from offline_judge.errors import StorageError
from offline_judge.runs import control as control_module
from offline_judge.runs.control import ControlServer
from offline_judge.runs.control_client import ControlClient

# Not a conftest.py: the type checker knows modules by their names, and there is one already.
pytest_plugins = ("control_fixtures",)


def _progress(finished: int) -> Progress:
    return Progress(planned=10, finished=finished)


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
    with await stuck_subscriber(server) as slow:
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
    with await stuck_subscriber(server):
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
    with await stuck_subscriber(server):
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


def _delta(call: int, at: int, text: str) -> TokenDelta:
    return TokenDelta(call=call, sample_id="a", lane=0, stage="verdict", at=at, text=text)


async def test_unsent_deltas_of_a_call_become_one_in_the_place_of_the_first(
    server: ControlServer, peers: Peers
) -> None:
    peer = await peers(server)
    await peer.subscribe()
    for number in range(100):
        server.delta(_delta(1, number, "x"))
        server.delta(_delta(2, 2 * number, "yé"))
        server.slots(Slots(number))
    server.event(finished())
    first, second = (await peer.hear())["delta"], (await peer.hear())["delta"]
    assert (first["call"], first["at"], first["text"]) == (1, 0, "x" * 100)
    assert (second["call"], second["at"], second["text"]) == (2, 0, "yé" * 100)
    assert await peer.hear() == {"slots": {"total": 99, "busy": []}}
    assert "event" in await peer.hear()
    server.delta(_delta(1, 100, "z"))
    assert (await peer.hear())["delta"]["at"] == 100


async def test_whoever_comes_later_is_not_told_old_deltas(
    server: ControlServer, peers: Peers
) -> None:
    assert not server.watched
    server.delta(_delta(1, 0, "x"))
    peer = await peers(server)
    await peer.subscribe()
    assert server.watched
    server.delta(_delta(1, 1, "y"))
    assert (await peer.hear())["delta"]["text"] == "y"


async def test_a_watcher_may_be_ended_from_another_thread(
    server: ControlServer, runtime: Path
) -> None:
    messages = await asyncio.to_thread(ControlClient(runtime, RUN).subscribe)
    waiting = asyncio.create_task(asyncio.to_thread(lambda: list(messages)))
    server.phase("load")
    messages.interrupt()
    heard = await asyncio.wait_for(waiting, 10)
    assert heard in ([], [{"phase": {"phase": "load", "detail": ""}}])
    messages.close()
    messages.interrupt()
