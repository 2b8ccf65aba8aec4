"""Stopping: signals in their order, and guarded work that really ends."""

from __future__ import annotations

import asyncio
import os
import signal
from concurrent.futures import ThreadPoolExecutor

import pytest

from offline_judge.runner.listeners import SafeListeners
from offline_judge.runner.stopping import Stop, StoppedError, StopSwitch, stop_signals


class Phases(SafeListeners):
    def __init__(self) -> None:
        super().__init__()
        self.heard: list[str] = []
        self.news = asyncio.Event()

    def phase(self, phase: str, detail: str = "") -> None:
        self.heard.append(phase)
        self.news.set()


async def _send(number: signal.Signals, phases: Phases) -> None:
    phases.news.clear()
    os.kill(os.getpid(), number)
    await asyncio.wait_for(phases.news.wait(), 5)


async def test_the_first_interrupt_drains_and_the_second_cancels() -> None:
    switch, phases = StopSwitch(), Phases()
    with stop_signals(switch, phases):
        await _send(signal.SIGINT, phases)
        assert (switch.state, phases.heard) == (Stop.DRAIN, ["drain"])
        await _send(signal.SIGINT, phases)
        assert (switch.state, phases.heard) == (Stop.CANCEL, ["drain", "cancel"])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
async def test_being_told_to_go_cancels_at_once(number: signal.Signals) -> None:
    switch, phases = StopSwitch(), Phases()
    # The tests themselves may run under nohup, which ignores one of the two.
    before = signal.signal(number, signal.SIG_DFL)
    try:
        with stop_signals(switch, phases):
            await _send(number, phases)
    finally:
        signal.signal(number, before)
    assert switch.state is Stop.CANCEL


async def test_an_ignored_hangup_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with stop_signals(StopSwitch(), Phases()):
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


async def test_handlers_are_given_back() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with stop_signals(StopSwitch(), Phases()):
        pass
    assert signal.getsignal(signal.SIGTERM) is before


def test_outside_the_main_thread_signals_are_left_alone() -> None:
    async def inside() -> None:
        with stop_signals(StopSwitch(), SafeListeners()):
            pass

    with ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, inside()).result()


async def _stuck(ended: list[str]) -> str:
    try:
        await asyncio.Event().wait()
    finally:
        await asyncio.sleep(0)
        ended.append("cleaned up")
    return "never"


async def test_guarded_work_has_ended_when_the_guard_says_stopped() -> None:
    switch, ended = StopSwitch(), list[str]()
    waiting = asyncio.create_task(switch.guard(_stuck(ended), until=Stop.CANCEL))
    await asyncio.sleep(0)  # the guard begins
    await asyncio.sleep(0)  # and its work
    switch.cancel()
    with pytest.raises(StoppedError):
        await waiting
    assert ended == ["cleaned up"]


async def test_a_drain_does_not_touch_work_guarded_until_cancel() -> None:
    switch = StopSwitch()

    async def work() -> str:
        switch.drain()
        await asyncio.sleep(0)
        return "done"

    assert await switch.guard(work(), until=Stop.CANCEL) == "done"


async def test_work_is_not_begun_once_the_switch_is_thrown() -> None:
    switch, begun = StopSwitch(), list[str]()
    switch.cancel()

    async def work() -> None:
        begun.append("begun")

    with pytest.raises(StoppedError):
        await switch.guard(work(), until=Stop.DRAIN)
    assert begun == []


async def test_a_cancelled_caller_ends_its_guarded_work() -> None:
    switch, ended = StopSwitch(), list[str]()
    caller = asyncio.create_task(switch.guard(_stuck(ended), until=Stop.CANCEL))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    assert ended == ["cleaned up"]


async def test_nothing_goes_on_during_a_pause() -> None:
    switch, begun = StopSwitch(), list[str]()

    async def work() -> None:
        await switch.going()
        begun.append("work")

    assert switch.pause()
    task = asyncio.create_task(work())
    for _ in range(5):
        await asyncio.sleep(0)
    assert (switch.paused, begun) == (True, [])
    switch.go_on()
    await task
    assert (switch.paused, begun) == (False, ["work"])


@pytest.mark.parametrize("stop", ["drain", "cancel"])
async def test_stopping_ends_a_pause_and_allows_no_other(stop: str) -> None:
    switch = StopSwitch()
    switch.pause()
    getattr(switch, stop)()
    await asyncio.wait_for(switch.going(), 5)
    assert not switch.pause()
    assert not switch.paused


def test_the_working_clock_stands_still_during_a_pause() -> None:
    now = [100.0]
    switch = StopSwitch(lambda: now[0])
    begin = switch.working_clock()
    now[0] += 5
    switch.pause()
    now[0] += 60
    switch.pause()
    now[0] += 60
    assert switch.working_clock() - begin == 5
    switch.go_on()
    switch.go_on()
    now[0] += 1
    assert switch.working_clock() - begin == 6
