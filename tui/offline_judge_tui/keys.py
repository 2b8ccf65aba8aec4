"""Every key of the program in one table; each may be set anew in the settings' section `[keys]`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from textual.binding import Binding


@dataclass(frozen=True)
class Key:
    """A key.

    Attributes:
        id: `place.what`; by this name it is set anew.
        keys: The keys, as Textual writes them, separated by commas.
        does: What it does, for the help and the footer.
        shown: It stands in the footer.
    """

    id: str
    keys: str
    does: str
    shown: bool = True


_ALL = (
    Key("app.help", "question_mark,f1", "Help"),
    Key("app.back", "escape", "Back"),
    Key("app.home", "ctrl+g", "All runs", False),
    Key("app.new_run", "ctrl+n", "New run", False),
    Key("app.theme", "ctrl+t", "Light or dark", False),
    Key("app.copy_file", "Y", "Write the last copy to a file", False),
    Key("app.quit", "ctrl+q", "Quit", False),
    Key("table.up", "up,k", "One row up", False),
    Key("table.down", "down,j", "One row down", False),
    Key("table.page_up", "pageup,ctrl+b", "One page up", False),
    Key("table.page_down", "pagedown,ctrl+f", "One page down", False),
    Key("table.first", "home,g", "First row", False),
    Key("table.last", "end,G", "Last row", False),
    Key("table.open", "enter", "Open", False),
    Key("home.new", "n", "New run"),
    Key("home.filter", "slash", "Filter"),
    Key("home.resume", "r", "Resume"),
    Key("home.delete", "delete,d", "Delete"),
    Key("home.reload", "f5,ctrl+r", "Read again", False),
    Key("home.quit", "q", "Quit"),
    Key("run.filter", "slash", "Filter"),
    Key("run.order", "o", "Order"),
    Key("run.outcome", "u", "Outcome"),
    Key("run.disagree", "x", "Disagreements"),
    Key("run.pause", "p", "Pause or go on"),
    Key("run.drain", "s", "Stop after these", False),
    Key("run.cancel", "ctrl+x", "Cancel", False),
    Key("run.resume", "r", "Resume"),
    Key("run.now", "1", "Now", False),
    Key("run.log", "2", "Log", False),
    Key("run.charts", "3", "Charts", False),
    Key("run.about", "4", "About", False),
    Key("run.copy", "y", "Copy the run's id", False),
    Key("sample.next", "right_square_bracket,N", "Next disagreement"),
    Key("sample.previous", "left_square_bracket,P", "Previous disagreement", False),
    Key("sample.after", "n", "Next sample", False),
    Key("sample.before", "p", "Previous sample", False),
    Key("sample.cited", "c", "Citation"),
    Key("sample.found", "e", "Next evidence", False),
    Key("sample.found_before", "E", "Previous evidence", False),
    Key("sample.verdict", "v", "Verdict", False),
    Key("sample.text", "1", "Text", False),
    Key("sample.evidence", "2", "Evidence", False),
    Key("sample.prompt", "3", "Prompt", False),
    Key("sample.why", "4,w", "Why"),
    Key("sample.without", "x", "Without it"),
    Key("sample.own", "a", "Own passage"),
    Key("sample.judge", "ctrl+s", "Judge again, from the passage", False),
    Key("sample.reload", "f5,ctrl+r", "Read again", False),
    Key("sample.thinking", "t", "Thinking", False),
    Key("sample.copy", "y", "Copy"),
    Key("new_run.preview", "f5,ctrl+r", "Read the file"),
    Key("new_run.start", "ctrl+s", "Start"),
    Key("new_run.pull", "ctrl+l", "Pull the judge"),
    Key("new_run.copy", "ctrl+y", "Copy the command"),
)
KEYS: Mapping[str, Key] = {key.id: key for key in _ALL}

PLACES = {
    "app": "Everywhere",
    "table": "In tables",
    "home": "Runs",
    "run": "Run",
    "sample": "Sample",
    "new_run": "New run",
}
"""What stands before the point of an id, and its heading in the help."""


def binding(identity: str, action: str = "") -> Binding:
    """The binding of a key; its action is what stands behind the point, unless another is given."""
    key = KEYS[identity]
    return Binding(
        key.keys,
        action or identity.partition(".")[2],
        key.does,
        show=key.shown,
        id=identity,
    )


def problems(wanted: Mapping[str, str]) -> list[str]:
    """What of a user's keys cannot be used, a sentence each."""
    found = []
    for name in wanted:
        if name not in KEYS:
            close = get_close_matches(name, KEYS, n=1)
            hint = f"; did you mean `{close[0]}`?" if close else "; the help names them"
            found.append(f"No key is called `{name}`{hint}")
    return found


def usable(wanted: Mapping[str, str]) -> dict[str, str]:
    """A user's keys that there are."""
    return {name: keys for name, keys in wanted.items() if name in KEYS}
