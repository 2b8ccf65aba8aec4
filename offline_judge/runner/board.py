"""Owns what every lane's requests do now, and tells it to those who watch, a few times a second."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from offline_judge.domain.progress import Slots, SlotState, TokenDelta

INTERVAL_S = 0.05
"""Seconds between two deltas of one call, and between two tellings of the slots."""


class Audience(Protocol):
    """Those who watch a run while it works; a control server is one."""

    @property
    def watched(self) -> bool:
        """Whether anybody is there: without, nothing is put together."""

    def delta(self, delta: TokenDelta) -> None:
        """The engine wrote something."""

    def slots(self, slots: Slots) -> None:
        """What the slots do changed."""


@dataclass
class _Request:
    call: int
    lane: str
    stage: str
    of: int
    read: int = 0
    written: int = 0
    text: str = ""
    told: int = 0
    told_at: float = 0.0


class Board:
    """What each request to the engine does now; lives on the run's event loop.

    Args:
        doing: Told each sample and what is done for it, for people.
        clock: Monotonic seconds.
    """

    def __init__(
        self,
        doing: Callable[[str, str], None] = lambda _sample_id, _doing: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._doing = doing
        self._slots = 0
        self._clock = clock
        self._audience: Audience | None = None
        self._samples: dict[str, str] = {}
        self._open: dict[int, _Request] = {}
        self._calls = 0
        self._told_slots_at = 0.0

    def show(self, audience: Audience) -> None:
        """Tell those who watch, from now on."""
        self._audience = audience

    def assign(self, lane: int, sample_id: str) -> None:
        """Say which sample a lane works on."""
        self._samples[str(lane)] = sample_id

    def begin(self, affinity: str, tokens: int, slots: int) -> int:
        """A request begins; returns its number.

        Args:
            affinity: The lane and the stage, `lane/stage`.
            tokens: Of its prompt.
            slots: How many the engine has, for all requests.
        """
        self._slots = slots
        self._calls += 1
        lane, _, stage = affinity.partition("/")
        request = _Request(self._calls, lane, stage, tokens)
        self._open[request.call] = request
        self._say(request, f"reading {tokens} tokens")
        self._tell_slots(now=True)
        return request.call

    def read(self, call: int, tokens: int) -> None:
        """A request has read so many tokens of its prompt."""
        request = self._open[call]
        request.read = tokens
        self._say(request, f"reading {tokens} of {request.of} tokens")
        self._tell_slots()

    def write(self, call: int, text: str) -> None:
        """A request has written one more piece."""
        request = self._open[call]
        begins = not request.written
        request.written += 1
        request.read = request.of
        request.text += text
        self._say(request, f"writing, {request.written} tokens")
        if self._clock() - request.told_at >= INTERVAL_S:
            self._tell_text(request)
        self._tell_slots(now=begins)

    def end(self, call: int) -> None:
        """A request has ended, however it did."""
        self._tell_text(self._open.pop(call))
        self._tell_slots(now=True)

    def _say(self, request: _Request, doing: str) -> None:
        if request.lane in self._samples:
            self._doing(self._samples[request.lane], f"{request.stage}: {doing}")

    def _tell_text(self, request: _Request) -> None:
        if self._audience is None or not self._audience.watched:
            return
        if request.told == len(request.text):
            return
        request.told_at = self._clock()
        begin, request.told = request.told, len(request.text)
        self._audience.delta(
            TokenDelta(
                call=request.call,
                sample_id=self._samples.get(request.lane, ""),
                lane=_number(request.lane),
                stage=request.stage,
                at=begin,
                text=request.text[begin:],
            )
        )

    def _tell_slots(self, *, now: bool = False) -> None:
        if self._audience is None or not self._audience.watched:
            return
        if not now and self._clock() - self._told_slots_at < INTERVAL_S:
            return
        self._told_slots_at = self._clock()
        busy = tuple(self._state(request) for request in self._open.values())
        self._audience.slots(Slots(self._slots, busy))

    def _state(self, request: _Request) -> SlotState:
        return SlotState(
            call=request.call,
            sample_id=self._samples.get(request.lane, ""),
            lane=_number(request.lane),
            stage=request.stage,
            doing="writing" if request.written else "reading",
            read=request.read,
            of=request.of,
            written=request.written,
        )


def _number(lane: str) -> int:
    return int(lane) if lane.isdigit() else 0
