"""Which request runs on which slot: one at a time each, and shared prefixes stay where they are."""

from __future__ import annotations

import asyncio


class SlotTable:
    """Gives each affinity a slot of its own while there are enough, else the least used one."""

    def __init__(self, slots: int) -> None:
        self._locks = [asyncio.Lock() for _ in range(slots)]
        self._owners: list[str | None] = [None] * slots
        # Slots from least to most recently used.
        self._order = list(range(slots))

    async def acquire(self, affinity: str) -> int:
        """Wait for the affinity's slot and hold it until `release`."""
        slot = self._choose(affinity)
        self._owners[slot] = affinity
        self._order.remove(slot)
        self._order.append(slot)
        await self._locks[slot].acquire()
        return slot

    async def take(self, slot: int) -> None:
        """Wait for this very slot and hold it until `release`; its affinity stays."""
        await self._locks[slot].acquire()

    def release(self, slot: int) -> None:
        """Let the next request have the slot."""
        self._locks[slot].release()

    def _choose(self, affinity: str) -> int:
        if affinity in self._owners:
            return self._owners.index(affinity)
        if None in self._owners:
            return self._owners.index(None)
        idle = [slot for slot in self._order if not self._locks[slot].locked()]
        return (idle or self._order)[0]
