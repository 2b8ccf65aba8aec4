"""The form for a new run: what is chosen, and what that comes to as a request and settings."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Checkbox, Input, Label, Select, Static

from offline_judge.domain.numbers import size
from offline_judge_tui.text import line

if TYPE_CHECKING:
    from offline_judge.api import MethodView, ModelView, RunChoices

OWN = "the program's own"
NOBODY = "nobody: the data has responses"
_HERE = {"present": "here", "partial": "in part"}


@dataclass(frozen=True)
class Choice:
    """What the form says now; everything as text but what is ticked.

    Attributes:
        method: Name of the method.
        data: Path of the data file.
        judge: Name of the judge's card.
        search: Value of the setting.
        format: Form of a public set, or empty.
        responses: Path of a file of responses, or empty.
        candidate: Name of the model that writes the responses, or empty.
        calibration: Path of a calibration, or empty.
        mapping: Column to field.
        options: The method's own, those that are not left as they are.
        limit: Samples at most, or empty.
        minutes: Likewise.
        skip_bad: Bad rows are left out.
    """

    method: str = "sage"
    data: str = ""
    judge: str = ""
    search: str = ""
    format: str = ""
    responses: str = ""
    candidate: str = ""
    calibration: str = ""
    mapping: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    limit: str = ""
    minutes: str = ""
    skip_bad: bool = False

    @property
    def path(self) -> Path:
        """The data file."""
        return _path(self.data) or Path()

    @property
    def responses_path(self) -> Path | None:
        """The file of responses, where one is named."""
        return _path(self.responses)

    @property
    def calibration_path(self) -> Path | None:
        """The calibration, where one is named."""
        return _path(self.calibration)

    def problems(self) -> Iterable[str]:
        """What of it cannot be read at all, a sentence each."""
        if not self.data.strip():
            yield "Name a data file."
        if self.limit.strip() and not (self.limit.strip().isdigit() and int(self.limit)):
            yield f"`{line(self.limit)}` is no number of samples."
        if self.minutes.strip() and self.minutes_wanted is None:
            yield f"`{line(self.minutes)}` is no number of minutes."

    @property
    def limit_wanted(self) -> int | None:
        """Samples at most, where that is said."""
        said = self.limit.strip()
        return int(said) if said.isdigit() and int(said) else None

    @property
    def minutes_wanted(self) -> float | None:
        """Minutes at most, where that is said."""
        try:
            minutes = float(self.minutes)
        except ValueError:
            return None
        return minutes if math.isfinite(minutes) and minutes > 0 else None


class Field(Horizontal):
    """A name and what is to be filled in behind it."""

    DEFAULT_CSS = """
    Field { height: auto; min-height: 1; }
    Field > Label { width: 15; color: $text-muted; }
    Field > Input { width: 1fr; }
    Field > Select { width: 1fr; }
    Field > Checkbox { width: 1fr; }
    """

    def __init__(self, name: str, filled: Widget) -> None:
        super().__init__()
        self._label = name
        self._filled = filled

    def compose(self) -> ComposeResult:
        """Side by side."""
        yield Label(self._label, markup=False)
        yield self._filled


class Tick(Checkbox):
    """A box that shows by a sign, and not by its colour alone, whether it is ticked."""

    def render(self) -> Content:
        """The box and its label."""
        self.BUTTON_INNER = "X" if self.value else " "
        return super().render()


class RunForm(VerticalScroll):
    """What is to be chosen.

    Args:
        data: A data file to begin with.
        judge: The judge as it is set.
        search: Likewise.
    """

    DEFAULT_CSS = """
    RunForm { padding: 0 1; }
    RunForm .heading { color: $primary; text-style: bold; margin-top: 1; }
    RunForm .meaning { color: $text-muted; padding-left: 15; }
    RunForm #options, RunForm #mapping { height: auto; }
    """

    class Changed(Message):
        """Something else is chosen."""

    def __init__(self, data: str, judge: str, search: str) -> None:
        super().__init__(id="form")
        self._data = data
        self._judge = judge
        self._search = search
        self._methods: dict[str, MethodView] = {}
        self._fields: tuple[str, ...] = ()
        self._columns: tuple[str, ...] = ()

    def compose(self) -> ComposeResult:
        """Fields in the order in which people think of them."""
        yield Field(
            "data file",
            Input(self._data, placeholder="file.jsonl or .csv", id="data", compact=True),
        )
        yield Field("format", _select("format", [(OWN, "")], ""))
        yield Vertical(id="mapping")
        file = "a file of their own, joined by id"
        yield Field("responses", Input(placeholder=file, id="responses", compact=True))
        yield Field("candidate", _select("candidate", [(NOBODY, "")], ""))
        yield Field("", Tick("leave out rows that cannot be read", id="skip_bad", compact=True))
        yield Label("How it is judged", classes="heading")
        yield Field("method", _select("method", [("sage", "sage")], "sage"))
        yield Static("", classes="meaning", id="method-summary", markup=False)
        yield Field("judge", _select("judge", [(self._judge, self._judge)], self._judge))
        yield Static("", classes="meaning", id="judge-fit", markup=False)
        yield Field("search", _select("search", [(self._search, self._search)], self._search))
        file = "a file that `calibrate` wrote"
        yield Field("calibration", Input(placeholder=file, id="calibration", compact=True))
        yield Label("How much", classes="heading")
        yield Field("samples", Input(placeholder="all", id="limit", compact=True))
        yield Field("minutes", Input(placeholder="no limit", id="minutes", compact=True))
        yield Label("Options of the method", classes="heading")
        yield Vertical(id="options")

    def offer(self, choices: RunChoices) -> None:
        """Offer what can be chosen; what was chosen stays."""
        self._methods = {method.name: method for method in choices.methods}
        self._fields = choices.fields
        self._set("method", [(name, name) for name in self._methods])
        judges = [(_described(model), model.card.name) for model in choices.models]
        if self._judge not in {name for _, name in judges}:
            judges.insert(0, (self._judge, self._judge))
        self._set("judge", judges)
        self._set("candidate", [(NOBODY, ""), *judges])
        searches = list(choices.searches)
        if self._search not in searches:
            searches.insert(0, self._search)
        self._set("search", [(name, name) for name in searches])
        self._set("format", [(OWN, ""), *((name, name) for name in choices.formats)])
        self.call_later(self._show_options)
        # The columns of a file may have come first, when the fields were not known yet.
        self.call_later(self._show_mapping)

    def show_columns(self, columns: Sequence[str]) -> None:
        """Offer the columns of the data file for the fields of a sample."""
        if tuple(columns) != self._columns:
            self._columns = tuple(columns)
            self.call_later(self._show_mapping)

    def show_fit(self, text: str) -> None:
        """Say whether the judge fits this machine."""
        self.query_one("#judge-fit", Static).update(text)

    @property
    def choice(self) -> Choice:
        """What is chosen now."""
        return Choice(
            method=self._chosen("method"),
            data=self.query_one("#data", Input).value,
            judge=self._chosen("judge"),
            search=self._chosen("search"),
            format=self._chosen("format"),
            responses=self.query_one("#responses", Input).value,
            candidate=self._chosen("candidate"),
            calibration=self.query_one("#calibration", Input).value,
            mapping={column: name for name, column in self._mapped().items()},
            options=self._options(),
            limit=self.query_one("#limit", Input).value,
            minutes=self.query_one("#minutes", Input).value,
            skip_bad=self.query_one("#skip_bad", Checkbox).value,
        )

    def on_select_changed(self, event: Select.Changed) -> None:
        """Another method has other options."""
        event.stop()
        if event.select.id == "method":
            self.call_later(self._show_options)
        self.post_message(self.Changed())

    def on_input_changed(self, event: Input.Changed) -> None:
        """Tell the screen."""
        event.stop()
        self.post_message(self.Changed())

    def on_checkbox_changed(self, event: Checkbox.Changed) -> None:
        """Tell the screen."""
        event.stop()
        self.post_message(self.Changed())

    async def _show_options(self) -> None:
        method = self._methods.get(self._chosen("method"))
        area = self.query_one("#options", Vertical)
        await area.remove_children()
        if method is None:
            return
        self.query_one("#method-summary", Static).update(line(method.summary))
        widgets: list[Widget] = []
        for option in method.options:
            name = f"option-{option.name}"
            if isinstance(option.default, bool):
                box = Tick(option.name, option.default, id=name, compact=True)
                widgets.append(Field("", box))
            else:
                typed = Input(placeholder=str(option.default), id=name, compact=True)
                widgets.append(Field(option.name, typed))
            widgets.append(Static(line(option.meaning), classes="meaning", markup=False))
        await area.mount_all(widgets or [Static("none", classes="meaning")])
        self.post_message(self.Changed())

    async def _show_mapping(self) -> None:
        area = self.query_one("#mapping", Vertical)
        await area.remove_children()
        if self._chosen("format") or not self._columns:
            return
        columns = [(line(column), column) for column in self._columns]
        fields = [
            Field(name, _select(f"field-{name}", [(f"column `{name}`", ""), *columns], ""))
            for name in self._fields
            if name not in self._columns
        ]
        await area.mount_all(fields)

    def _chosen(self, name: str) -> str:
        value = self.query_one(f"#{name}", Select).value
        return value if isinstance(value, str) else ""

    def _set(self, name: str, options: Sequence[tuple[str, str]]) -> None:
        select = self.query_one(f"#{name}", Select)
        before = select.value
        select.set_options(options)
        if before in {value for _, value in options}:
            select.value = before

    def _mapped(self) -> dict[str, str]:
        found = {}
        for select in self.query("#mapping Select").results(Select):
            if isinstance(select.value, str) and select.value:
                found[str(select.id).removeprefix("field-")] = select.value
        return found

    def _options(self) -> dict[str, Any]:
        method = self._methods.get(self._chosen("method"))
        found: dict[str, Any] = {}
        for option in method.options if method is not None else ():
            for widget in self.query(f"#option-{option.name}"):
                if isinstance(widget, Checkbox) and widget.value != option.default:
                    found[option.name] = widget.value
                elif isinstance(widget, Input) and widget.value.strip():
                    found[option.name] = _scalar(widget.value.strip())
        return found


def _path(said: str) -> Path | None:
    """A path as it was typed, `~` written out."""
    return Path(said.strip()).expanduser() if said.strip() else None


def _select(name: str, options: Sequence[tuple[str, str]], value: str) -> Select[str]:
    return Select(options, value=value, allow_blank=False, id=name, compact=True)


def _described(model: ModelView) -> str:
    card = model.card
    weighs = f"{size(card.size)}, " if card.size else ""
    return f"{card.name}, {weighs}{_HERE.get(model.state, 'not here')}"


def _scalar(raw: str) -> Any:
    """A number where it is one; all else stays text, and the method says what it thinks of it."""
    try:
        value = json.loads(raw)
    except ValueError:
        return raw
    return value if isinstance(value, int | float) else raw
