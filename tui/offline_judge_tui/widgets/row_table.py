"""A table of any length: it holds only the rows near what is seen, and asks for others."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from textual.binding import BindingType
from textual.events import Click, Resize
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from offline_judge_tui.keys import binding
from offline_judge_tui.text import line

PAGE = 100
"""Rows that are asked for at a time."""
_KEPT = 60
"""Pages that are kept."""
_GAP = 2


@dataclass(frozen=True)
class Column:
    """A column.

    Attributes:
        title: Its heading.
        width: Cells that it has at least.
        right: Its texts stand to the right.
        grow: It takes what is left of the width.
        drop: Where there is too little width, columns with a larger number go first; 0 stays.
    """

    title: str
    width: int
    right: bool = False
    grow: bool = False
    drop: int = 0


@dataclass(frozen=True)
class TableRow:
    """A row: a key, one text a column, and the name of a style (`good`, `bad`, `odd`, `dim`)."""

    key: str
    cells: tuple[str, ...]
    style: str = ""


class RowTable(ScrollView, can_focus=True):
    """Rows by number, one of which the cursor is on.

    Args:
        columns: What a row is made of.
        id: Of the widget.
    """

    DEFAULT_CSS = """
    RowTable { overflow-x: hidden; overflow-y: auto; }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        f"row-table--{name}" for name in ("header", "cursor", "good", "bad", "odd", "dim")
    }
    BINDINGS: ClassVar[list[BindingType]] = [
        binding("table.up", "move(-1)"),
        binding("table.down", "move(1)"),
        binding("table.page_up", "move_page(-1)"),
        binding("table.page_down", "move_page(1)"),
        binding("table.first", "move_to(0)"),
        binding("table.last", "move_to(-1)"),
        binding("table.open", "open"),
    ]

    cursor: reactive[int] = reactive(0)
    """Number of the row that the cursor is on; 0 in an empty table."""

    class Wanted(Message):
        """Rows from `first` on are seen, or soon will be, and not known."""

        def __init__(self, table: RowTable, first: int) -> None:
            super().__init__()
            self.table, self.first = table, first

    class Moved(Message):
        """The cursor is on another row."""

        def __init__(self, table: RowTable, row: TableRow | None) -> None:
            super().__init__()
            self.table, self.row = table, row

    class Opened(Message):
        """A row was chosen, by key or mouse."""

        def __init__(self, table: RowTable, row: TableRow) -> None:
            super().__init__()
            self.table, self.row = table, row

    def __init__(self, columns: Sequence[Column], *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._columns = tuple(columns)
        self._pages: OrderedDict[int, tuple[TableRow, ...]] = OrderedDict()
        self._asked: set[int] = set()
        self._total = 0
        self._keep = ""
        self._widths: tuple[tuple[int, int], ...] = ()
        self._laid_out = 0

    @property
    def total(self) -> int:
        """How many rows there are."""
        return self._total

    @property
    def row(self) -> TableRow | None:
        """The row that the cursor is on, if it is known."""
        return self.known(self.cursor)

    def known(self, number: int) -> TableRow | None:
        """A row by its number, if it is known."""
        page = self._pages.get(number // PAGE)
        place = number % PAGE
        return page[place] if page is not None and place < len(page) else None

    def show_rows(self, rows: Iterable[TableRow]) -> None:
        """Show these rows and no others; the cursor stays on the row of its key."""
        found = list(rows)
        key = self.row.key if self.row else self._keep
        self._pages = OrderedDict(
            (start // PAGE, tuple(found[start : start + PAGE]))
            for start in range(0, len(found), PAGE)
        )
        self._resize(len(found))
        numbers = {row.key: number for number, row in enumerate(found)}
        self.cursor = numbers.get(key, min(self.cursor, max(0, len(found) - 1)))
        self.refresh()
        self.post_message(self.Moved(self, self.row))

    def renew(self, total: int) -> None:
        """Ask anew for what is seen: the rows have changed, and there are `total` of them.

        What is shown stays until its place is taken by `put`.
        """
        self._asked.clear()
        for number in [n for n in self._pages if n not in self._seen_pages()]:
            del self._pages[number]
        self._resize(total)
        self.cursor = min(self.cursor, max(0, total - 1))
        self._want(force=True)
        self.refresh()

    def clear(self) -> None:
        """Forget every row."""
        self._pages.clear()
        self._asked.clear()
        self._resize(0)
        self.cursor = 0
        self.scroll_to(y=0, animate=False)
        self.refresh()

    def put(self, first: int, rows: Sequence[TableRow], total: int) -> None:
        """Take in the rows from number `first` on, a multiple of `PAGE`, `PAGE` of them at most."""
        before = self.row
        self._asked.discard(first // PAGE)
        self._pages[first // PAGE] = tuple(rows)
        self._pages.move_to_end(first // PAGE)
        seen = self._seen_pages()
        for number in [n for n in self._pages if n not in seen][: max(0, len(self._pages) - _KEPT)]:
            del self._pages[number]
        if total != self._total:
            self._resize(total)
        self.refresh()
        if self.row != before:
            self.post_message(self.Moved(self, self.row))

    def place_cursor(self, number: int) -> None:
        """Put the cursor on a row, also one that is not known yet."""
        self.cursor = max(0, min(number, self._total - 1))

    def render_line(self, y: int) -> Strip:
        """One line of what is seen: the heading, or a row."""
        width = self._room.width
        if width != self._laid_out:
            self._lay_out(width)
        if y == 0:
            titles = [column.title for column in self._columns]
            return self._strip(titles, "header", width)
        number = round(self.scroll_offset.y) + y - 1
        if number >= self._total:
            return Strip.blank(width, self.rich_style)
        row = self.known(number)
        if row is None:
            return self._strip(["…"], "dim", width, cursor=number == self.cursor)
        return self._strip(row.cells, row.style, width, cursor=number == self.cursor)

    def watch_cursor(self, before: int, now: int) -> None:
        """Keep the cursor in sight, and tell where it is."""
        if not self.is_mounted:
            return
        # The heading covers the first line of what is seen, so a row needs the line below too.
        self.scroll_to_region(Region(0, now, 1, 2), animate=False, force=True)
        self._want()
        if before != now:
            self.refresh()
            self.post_message(self.Moved(self, self.row))

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Ask for rows that come into sight."""
        super().watch_scroll_y(old_value, new_value)
        self._want()

    def on_resize(self, _event: Resize) -> None:
        """Other columns may fit now."""
        self._lay_out(self._room.width)
        self._resize(self._total)
        self._want()

    def on_click(self, event: Click) -> None:
        """The first click moves the cursor, one on the cursor opens."""
        number = round(self.scroll_offset.y) + event.y - 1
        if event.y == 0 or not 0 <= number < self._total:
            return
        if number == self.cursor:
            self.action_open()
        self.cursor = number

    def action_move(self, by: int) -> None:
        """Move the cursor by rows."""
        self.place_cursor(self.cursor + by)

    def action_move_page(self, by: int) -> None:
        """Move the cursor by what is seen at a time."""
        self.place_cursor(self.cursor + by * max(1, self._room.height - 2))

    def action_move_to(self, number: int) -> None:
        """Move the cursor to a row; -1 is the last one."""
        self.place_cursor(self._total - 1 if number < 0 else number)

    def action_open(self) -> None:
        """Choose the row that the cursor is on."""
        if self.row is not None:
            self.post_message(self.Opened(self, self.row))

    @property
    def _room(self) -> Size:
        """What is seen, without the scrollbar."""
        return self.scrollable_content_region.size

    def _resize(self, total: int) -> None:
        self._total = total
        self.virtual_size = Size(max(1, self._room.width), total + 1)

    def _seen_pages(self) -> range:
        """Numbers of the pages that are seen, and of their neighbours."""
        first = max(0, round(self.scroll_offset.y) - PAGE // 2)
        last = min(self._total, round(self.scroll_offset.y) + self._room.height + PAGE // 2)
        return range(first // PAGE, -(-max(last, 1) // PAGE))

    def _want(self, *, force: bool = False) -> None:
        for number in self._seen_pages():
            known = number in self._pages and not force
            if known or number in self._asked or number * PAGE >= max(1, self._total):
                continue
            self._asked.add(number)
            self.post_message(self.Wanted(self, number * PAGE))

    def _lay_out(self, width: int) -> None:
        """Choose the columns that fit, and how wide each is."""
        self._laid_out = width
        kept = list(range(len(self._columns)))

        def needed() -> int:
            return sum(self._columns[n].width + _GAP for n in kept)

        while len(kept) > 1 and needed() > width:
            last = max(kept, key=lambda n: (self._columns[n].drop, n))
            if not self._columns[last].drop:
                break
            kept.remove(last)
        spare = max(0, width - needed())
        growing = [n for n in kept if self._columns[n].grow]
        share, rest = divmod(spare, len(growing)) if growing else (0, 0)
        widths = []
        for number in kept:
            extra = share + (rest if number in growing[:1] else 0) if number in growing else 0
            widths.append((number, self._columns[number].width + extra))
        self._widths = tuple(widths)

    def _strip(
        self, cells: Sequence[str], style: str, width: int, *, cursor: bool = False
    ) -> Strip:
        name = "cursor" if cursor else style
        shown = self.get_component_rich_style(f"row-table--{name}") if name else self.rich_style
        texts = []
        for number, cells_wide in self._widths:
            text = line(cells[number]) if number < len(cells) else ""
            texts.append(_fit(text, cells_wide, right=self._columns[number].right) + " " * _GAP)
        whole = set_cell_size("".join(texts), width)
        return Strip([Segment(whole, shown)], width)


def _fit(text: str, width: int, *, right: bool) -> str:
    """Text in so many cells, which is not so many characters; what is too long is cut."""
    if cell_len(text) > width:
        return set_cell_size(text, max(0, width - 1)) + ("…" if width else "")
    padding = " " * (width - cell_len(text))
    return padding + text if right else text + padding
