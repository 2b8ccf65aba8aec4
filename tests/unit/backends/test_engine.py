"""The engine's supervisor, over a child of a few lines: crash, back-off, stall, end."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from offline_judge.backends import engine as engine_module
from offline_judge.backends import launch_llama as launching
from offline_judge.backends import process as process_module
from offline_judge.backends.engine import Engine
from offline_judge.backends.launch_llama import ScriptLauncher
from offline_judge.backends.options import EngineOptions
from offline_judge.errors import BackendCrashedError, BackendStartError

FAKE = Path(__file__).with_name("fake_engine.py")
Maker = Callable[[str], Engine]


@pytest.fixture
async def make(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Maker]:
    monkeypatch.setattr(engine_module, "_FIRST_BACK_OFF_S", 0.001)
    made: list[Engine] = []

    def maker(model: str) -> Engine:
        options = EngineOptions(Path(model), "fake", window=64, stall_s=1.0)
        made.append(Engine(options, ScriptLauncher(FAKE)))
        return made[-1]

    yield maker
    for engine in made:
        await engine.close()


def _ignore(phase: str, detail: str = "") -> None:
    pass


def _pid(engine: Engine) -> int:
    assert engine.child is not None
    assert engine.child.pid is not None
    return engine.child.pid


async def _die(engine: Engine) -> BackendCrashedError:
    """One request that the child dies of."""
    wire = await engine.wire()
    try:
        async with wire.stream("/completion", {}) as events:
            async for _ in events:
                pass
    except BackendCrashedError as error:
        return await engine.crashed(error, wire)
    pytest.fail("the child lives")


async def test_start_tells_phases_and_what_the_child_reports(make: Maker) -> None:
    engine, phases = make("good"), list[str]()
    await engine.start(lambda phase, detail="": phases.append(phase))
    assert phases == ["spawn", "load"]
    assert engine.version == "fake"
    assert (await (await engine.wire()).get("/slots"))["pid"] == _pid(engine)


async def test_a_child_that_dies_at_start_is_told_with_the_cause_first(make: Maker) -> None:
    engine = make("dead")
    with pytest.raises(BackendStartError, match=r"exit status 9.*\[the cause; its consequence\]"):
        await engine.start(_ignore)


async def test_a_phase_that_does_not_end_is_a_failed_start(
    make: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(launching._PHASE_TIMEOUTS_S, "load", 0.1)
    engine = make("hang")
    with pytest.raises(BackendStartError, match="stayed in phase `load`"):
        await engine.start(_ignore)
    assert engine.child is not None
    assert not engine.child.alive


async def test_a_crash_is_told_and_the_next_request_finds_it_up(make: Maker) -> None:
    engine, phases = make("good"), list[tuple[str, str]]()
    await engine.start(lambda phase, detail="": phases.append((phase, detail)))
    before = _pid(engine)
    assert "exit status 7" in str(await _die(engine))
    assert (await (await engine.wire()).get("/slots"))["pid"] != before
    assert engine.restarts == 1
    assert ("restart", "exit status 7") in phases


async def test_crashes_without_success_between_them_end_it_for_good(make: Maker) -> None:
    engine = make("good")
    await engine.start(_ignore)
    for _ in range(engine_module._MOST_FAILURES + 1):
        await _die(engine)
    with pytest.raises(BackendStartError, match="5 times without one finished request"):
        await engine.wire()


async def test_a_finished_request_forgives_earlier_crashes(make: Maker) -> None:
    engine = make("good")
    await engine.start(_ignore)
    for _ in range(engine_module._MOST_FAILURES + 2):
        await _die(engine)
        await engine.wire()
        engine.succeeded()
    assert engine.restarts == engine_module._MOST_FAILURES + 2


async def test_back_off_doubles(make: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_module, "_FIRST_BACK_OFF_S", 0.2)
    engine = make("good")
    await engine.start(_ignore)
    waits = []
    for _ in range(2):
        await _die(engine)
        begun = time.monotonic()
        await engine.wire()
        waits.append(time.monotonic() - begun)
    assert waits[0] >= 0.2
    assert waits[1] >= 0.4


async def test_many_waiters_start_it_again_once(make: Maker) -> None:
    engine = make("good")
    await engine.start(_ignore)
    os.kill(_pid(engine), signal.SIGKILL)
    assert engine.child is not None
    await engine.child.wait()
    wires = await asyncio.gather(*(engine.wire() for _ in range(5)))
    assert len({id(wire) for wire in wires}) == 1
    assert engine.restarts == 1


async def test_news_of_an_earlier_childs_death_does_not_kill_the_next(make: Maker) -> None:
    engine = make("good")
    await engine.start(_ignore)
    old = await engine.wire()
    await _die(engine)
    await engine.wire()
    now = _pid(engine)
    late = BackendCrashedError("read late")
    assert await engine.crashed(late, old) is late
    assert _pid(engine) == now
    assert engine.child is not None
    assert engine.child.alive


async def test_a_silent_stream_gets_its_engine_killed(make: Maker) -> None:
    engine = make("silent")
    await engine.start(_ignore)
    async with asyncio.timeout(20):
        error = await _die(engine)
    assert "no sign of life" in str(error)


async def test_silence_without_a_stream_is_nothing(make: Maker) -> None:
    engine = make("good")
    engine.stall_s = 0.1
    await engine.start(_ignore)
    await asyncio.sleep(0.4)
    assert engine.child is not None
    assert engine.child.alive


async def test_close_ends_a_child_that_ignores_its_pipe(
    make: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_module, "_TERMINATE_S", 0.2)
    engine = make("stubborn")
    await engine.start(_ignore)
    child = engine.child
    await engine.close()
    await engine.close()
    assert child is not None
    assert not child.alive
    with pytest.raises(BackendCrashedError, match="closed"):
        await engine.wire()


async def test_the_child_has_a_session_of_its_own(make: Maker) -> None:
    engine = make("good")
    await engine.start(_ignore)
    assert os.getsid(_pid(engine)) == _pid(engine) != os.getsid(0)
