"""Requests of one affinity stay on one slot, and a slot works on one request."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from offline_judge.backends.slots import SlotTable


async def _use(table: SlotTable, affinity: str) -> int:
    slot = await table.acquire(affinity)
    table.release(slot)
    return slot


async def test_each_affinity_keeps_a_slot_of_its_own() -> None:
    table = SlotTable(3)
    first = [await _use(table, name) for name in "abc"]
    assert sorted(first) == [0, 1, 2]
    assert [await _use(table, name) for name in "cab"] == [first[2], first[0], first[1]]


async def test_the_least_recently_used_affinity_gives_way() -> None:
    table = SlotTable(2)
    a, b = await _use(table, "a"), await _use(table, "b")
    await _use(table, "a")
    assert await _use(table, "new") == b
    assert await _use(table, "a") == a


async def test_a_busy_slot_is_not_taken_while_another_is_idle() -> None:
    table = SlotTable(2)
    a = await table.acquire("a")
    await _use(table, "b")
    # "a" is the least recently used, but its slot is at work.
    assert await _use(table, "new") != a


async def test_a_second_request_of_an_affinity_waits_for_its_slot() -> None:
    table = SlotTable(2)
    slot = await table.acquire("a")
    waiting = asyncio.create_task(table.acquire("a"))
    await asyncio.sleep(0)
    assert not waiting.done()
    table.release(slot)
    assert await waiting == slot


async def test_a_waiter_that_is_cancelled_leaves_the_slot_usable() -> None:
    table = SlotTable(1)
    slot = await table.acquire("a")
    waiting = asyncio.create_task(table.acquire("b"))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    table.release(slot)
    async with asyncio.timeout(1):
        assert await _use(table, "c") == slot


@given(st.integers(1, 4), st.lists(st.sampled_from("abcdef"), max_size=30))
def test_no_slot_ever_has_two_requests(slots: int, names: list[str]) -> None:
    async def work() -> None:
        table, at_work = SlotTable(slots), set[int]()

        async def one(name: str) -> None:
            slot = await table.acquire(name)
            assert slot not in at_work
            at_work.add(slot)
            await asyncio.sleep(0)
            at_work.remove(slot)
            table.release(slot)

        async with asyncio.timeout(5):
            await asyncio.gather(*(one(name) for name in names))

    asyncio.run(work())
