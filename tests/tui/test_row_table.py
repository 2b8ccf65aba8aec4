"""The table: it holds what is seen of any number of rows, and no text breaks its columns."""

from __future__ import annotations

from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from offline_judge_tui.theme import CSS
from offline_judge_tui.widgets.row_table import PAGE, Column, RowTable, TableRow, _fit
from rich.cells import cell_len
from textual.app import App, ComposeResult
from ui_parts import HOSTILE

MANY = 100_000
COLUMNS = (
    Column("name", 10),
    Column("number", 8, right=True),
    Column("far", 12, drop=2),
    Column("text", 10, grow=True, drop=1),
)


class Rows(App[None]):
    CSS: ClassVar[str] = CSS

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[int] = []
        self.opened: list[str] = []
        self.answers = True

    def compose(self) -> ComposeResult:
        yield RowTable(COLUMNS)

    def on_mount(self) -> None:
        self.table.focus()

    @property
    def table(self) -> RowTable:
        return self.query_one(RowTable)

    def on_row_table_wanted(self, message: RowTable.Wanted) -> None:
        self.asked.append(message.first)
        if self.answers:
            rows = [row(n) for n in range(message.first, min(MANY, message.first + PAGE))]
            message.table.put(message.first, rows, MANY)

    def on_row_table_opened(self, message: RowTable.Opened) -> None:
        self.opened.append(message.row.key)

    def lines(self) -> list[str]:
        return [self.table.render_line(y).text for y in range(self.table.size.height)]


def row(number: int) -> TableRow:
    return TableRow(f"r{number}", (f"row {number}", f"{number:,}", "far", HOSTILE))


async def test_it_asks_for_what_is_seen_and_forgets_what_is_far() -> None:
    app = Rows()
    async with app.run_test(size=(80, 24)) as pilot:
        app.table.renew(MANY)
        await pilot.pause()
        assert app.lines()[1].startswith("row 0 ")
        await pilot.press("end")
        await pilot.pause()
        assert app.lines()[-1].startswith(f"row {MANY - 1} ")
        assert app.table.row == row(MANY - 1)
        for start in range(0, MANY, 1500):
            app.table.place_cursor(start)
            await pilot.pause()
        assert len(app.table._pages) < 80
        assert len(set(app.asked)) < MANY // PAGE // 2
        await pilot.press("home")
        await pilot.pause()
        assert app.lines()[1].startswith("row 0 ")


async def test_rows_that_are_not_there_yet_are_shown_as_such() -> None:
    app = Rows()
    app.answers = False
    async with app.run_test(size=(80, 24)) as pilot:
        app.table.renew(50)
        await pilot.press("down", "enter")
        assert app.lines()[1].startswith("…")
        assert app.table.row is None
        assert app.table.cursor == 1
        assert app.opened == []
        app.table.put(0, [row(n) for n in range(50)], 50)
        await pilot.press("enter")
        await pilot.pause()
        assert app.opened == ["r1"]


async def test_the_cursor_is_always_in_sight_and_follows_keys_and_mouse() -> None:
    app = Rows()
    async with app.run_test(size=(80, 24)) as pilot:
        app.table.renew(MANY)
        await pilot.pause()
        await pilot.press(*["pagedown"] * 3, "down", "k", "j")
        assert app.table.cursor == 3 * 22 + 1
        assert any(line.startswith(f"row {app.table.cursor} ") for line in app.lines()[1:])
        before = app.table.cursor
        await pilot.click(RowTable, offset=(3, 5))
        await pilot.pause()
        assert app.lines()[5].startswith(f"row {app.table.cursor} ")
        assert app.table.cursor != before
        assert app.opened == []
        await pilot.click(RowTable, offset=(3, 5))
        await pilot.pause()
        assert app.opened == [f"r{app.table.cursor}"]
        await pilot.click(RowTable, offset=(3, 0))
        assert len(app.opened) == 1


async def test_rows_that_change_keep_the_cursor_on_its_row() -> None:
    app = Rows()
    async with app.run_test(size=(80, 24)) as pilot:
        app.table.show_rows([row(n) for n in range(10)])
        await pilot.press("down", "down")
        app.table.show_rows([row(n) for n in (7, 5, 2, 1)])
        assert app.table.row == row(2)
        app.table.show_rows([row(7)])
        assert app.table.row == row(7)
        app.table.show_rows([])
        await pilot.press("down", "enter", "end", "pageup")
        assert app.table.row is None
        assert app.table.cursor == 0
        assert app.opened == []


@pytest.mark.parametrize(
    ("width", "titles"),
    [
        (80, ["name", "number", "far", "text"]),
        (40, ["name", "number", "text"]),
        (26, ["name", "number"]),
        (12, ["name", "numb"]),
    ],
)
async def test_columns_go_by_rank_where_there_is_too_little_room(
    width: int, titles: list[str]
) -> None:
    app = Rows()
    async with app.run_test(size=(width, 10)) as pilot:
        app.table.renew(MANY)
        await pilot.pause()
        heading = app.lines()[0].split()
        assert [title for title in titles if title in ("name", "number", "far", "text")] == [
            title for title in heading if title in ("name", "number", "far", "text")
        ]


async def test_no_text_breaks_a_line_and_none_is_obeyed() -> None:
    app = Rows()
    async with app.run_test(size=(80, 24)) as pilot:
        app.table.renew(MANY)
        await pilot.pause()
        for y in range(24):
            strip = app.table.render_line(y)
            assert cell_len(strip.text) == strip.cell_length == app.table._room.width
            assert "\x1b" not in strip.text
            assert "\u202e" not in strip.text
        assert "[b]bold[/b]" in app.lines()[1]


@given(st.text(max_size=60), st.integers(0, 30), st.booleans())
def test_a_cell_is_as_wide_as_it_shall_be(text: str, width: int, right: bool) -> None:
    from offline_judge_tui.text import line

    assert cell_len(_fit(line(text), width, right=right)) == width
