"""The board: what requests do, told to those who watch and to nobody else."""

from __future__ import annotations

from offline_judge.domain.progress import Slots, TokenDelta
from offline_judge.runner.board import INTERVAL_S, Board


class Watchers:
    def __init__(self) -> None:
        self.watched = True
        self.deltas: list[TokenDelta] = []
        self.standings: list[Slots] = []

    def delta(self, delta: TokenDelta) -> None:
        self.deltas.append(delta)

    def slots(self, slots: Slots) -> None:
        self.standings.append(slots)

    def text(self, call: int) -> str:
        """The answer as a watcher puts it together, which must find every piece in its place."""
        whole = ""
        for delta in self.deltas:
            if delta.call == call:
                assert delta.at == len(whole)
                whole += delta.text
        return whole


class Desk:
    """A board at a clock that stands."""

    def __init__(self) -> None:
        self.now = 100.0
        self.watchers = Watchers()
        self.said: list[tuple[str, str]] = []
        self.board = Board(lambda *told: self.said.append(told), clock=lambda: self.now)
        self.board.show(self.watchers)
        self.board.assign(0, "a")
        self.board.assign(1, "b")


def test_the_pieces_of_an_answer_make_the_whole_of_it() -> None:
    desk = Desk()
    call = desk.board.begin("0/relevance", 40, 8)
    for piece in "It is the kuna.":
        desk.board.write(call, piece)
        desk.now += INTERVAL_S / 4
    desk.board.end(call)
    assert desk.watchers.text(call) == "It is the kuna."
    # Told a few times a second, not once a token.
    assert 2 < len(desk.watchers.deltas) < 8
    told = desk.watchers.deltas[0]
    assert (told.sample_id, told.lane, told.stage) == ("a", 0, "relevance")


def test_what_slots_do_is_told_as_they_begin_and_end() -> None:
    desk = Desk()
    first = desk.board.begin("0/query", 40, 8)
    second = desk.board.begin("1/verdict", 90, 8)
    desk.now += INTERVAL_S
    desk.board.read(second, 64)
    desk.board.write(first, "x")
    desk.board.end(first)
    total, busy = desk.watchers.standings[-1].total, desk.watchers.standings[-1].busy
    assert total == 8
    assert [(slot.sample_id, slot.doing, slot.read, slot.of) for slot in busy] == [
        ("b", "reading", 64, 90)
    ]
    doing = {one.doing for told in desk.watchers.standings for one in told.busy if one.lane == 0}
    assert doing == {"reading", "writing"}
    desk.board.end(second)
    assert desk.watchers.standings[-1].busy == ()


def test_without_watchers_nothing_is_told_but_progress_is() -> None:
    desk = Desk()
    desk.watchers.watched = False
    call = desk.board.begin("0/query", 40, 8)
    desk.board.write(call, "early ")
    desk.now += 1
    desk.watchers.watched = True
    desk.board.write(call, "late")
    desk.board.end(call)
    # One who comes in between gets the whole answer so far.
    assert desk.watchers.text(call) == "early late"
    assert desk.said == [
        ("a", "query: reading 40 tokens"),
        ("a", "query: writing, 1 tokens"),
        ("a", "query: writing, 2 tokens"),
    ]


def test_requests_of_no_lane_are_nobodys() -> None:
    desk = Desk()
    desk.board.end(desk.board.begin("", 7, 8))
    assert desk.said == []
    assert [slot.sample_id for slot in desk.watchers.standings[0].busy] == [""]
