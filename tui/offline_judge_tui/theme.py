"""How it looks: a dark and a light theme, and the styles that several screens share."""

from __future__ import annotations

from textual.theme import Theme

DARK = Theme(
    name="judge-dark",
    primary="#5aa9e6",
    secondary="#7fc8a9",
    accent="#f2c14e",
    warning="#f2a65a",
    error="#ef6f6c",
    success="#7fc8a9",
    foreground="#d8dee9",
    background="#14181d",
    surface="#1a2027",
    panel="#232b34",
    dark=True,
)
LIGHT = Theme(
    name="judge-light",
    primary="#1f5f99",
    secondary="#2a7a5a",
    accent="#8a5a00",
    warning="#9a4a00",
    error="#a8201a",
    success="#2a7a5a",
    foreground="#1c2530",
    background="#fbfaf7",
    surface="#f2f0ea",
    panel="#e6e2d8",
    dark=False,
)

CSS = """
Screen { background: $background; color: $foreground; }
TitleBar { dock: top; height: 1; background: $panel; color: $foreground; padding: 0 1; }
Footer { background: $panel; }
.status { height: 1; padding: 0 1; background: $surface; color: $foreground; }
.quiet { color: $text-muted; }
.pane { border: none; padding: 0 1; background: $surface; }
.field-name { color: $text-muted; }
Input.filter { dock: bottom; height: 1; border: none; padding: 0 1; background: $panel; }
Input.filter.hidden { display: none; }
RowTable { height: 1fr; background: $background; }
RowTable > .row-table--header { background: $surface; color: $text-muted; text-style: bold; }
RowTable > .row-table--cursor { background: $panel; text-style: bold; }
RowTable:focus > .row-table--cursor { background: $primary; color: $background; text-style: bold; }
RowTable > .row-table--good { color: $success; }
RowTable > .row-table--bad { color: $error; }
RowTable > .row-table--odd { color: $warning; }
RowTable > .row-table--dim { color: $text-muted; }
ModalScreen { align: center middle; background: $background 60%; }
.dialog { width: 72; max-width: 96%; height: auto; max-height: 90%; padding: 1 2;
          background: $surface; border: round $primary; }
.dialog .buttons { height: auto; margin-top: 1; align-horizontal: right; }
.dialog Button { margin-left: 2; }
"""
