"""Why: how the sample is judged with its evidence changed, beside how it was."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.widgets import Button, OptionList, Static
from textual.widgets.option_list import Option

from offline_judge_tui.text import BAD, DIM, GOOD, WARN, bar, piece, truth

if TYPE_CHECKING:
    from offline_judge_tui.again import Variant
    from offline_judge_tui.traces.rows import JudgedRow

AS_JUDGED = "as-judged"

_HELP = (
    "What moves the verdict? Judge this sample again without the chosen piece of evidence, or with "
    "a passage of your own. Each becomes a run of its own; this trace stays as it is."
)


class WhyPane(VerticalScroll):
    """Lists the derived runs of a sample and how far each moved the probability."""

    DEFAULT_CSS = """
    WhyPane {
        padding: 0 1;
        & > #why-help { color: $text-muted; margin: 1 0 0 0; }
        & > #why-buttons { height: auto; margin: 0 0 1 0; }
        & > #why-buttons > Button { margin: 0 1 0 0; }
        & > OptionList { border: none; padding: 0; height: auto; max-height: 12; }
    }
    """

    class Opened(Message):
        """A derived run shall be looked at."""

        def __init__(self, run_id: str) -> None:
            self.run_id = run_id
            super().__init__()

    def compose(self) -> ComposeResult:
        """What can be done, what is being done, and what came of it."""
        yield Static(id="why-chosen", markup=False)
        with Horizontal(id="why-buttons"):
            yield Button("Without it", id="why-without", compact=True)
            yield Button("With a passage of mine", id="why-own", compact=True)
            yield Button("Stop", id="why-stop", compact=True)
        yield Static(id="why-doing", markup=False)
        yield OptionList(id="why-variants", compact=True)
        yield Static(_HELP, id="why-help", markup=False)

    def on_mount(self) -> None:
        """Nothing is judged again yet."""
        self.finish("")

    def choose(self, name: str) -> None:
        """Say which piece of evidence would be left out; "" for none."""
        told = piece(name, "bold") if name else Content("none; choose one in the tree")
        self.query_one("#why-chosen", Static).update(
            Content.assemble(("chosen evidence  ", DIM), told)
        )
        self.query_one("#why-without", Button).disabled = not name

    def begin(self, doing: str) -> None:
        """Say what is being done; it can be stopped."""
        self.query_one("#why-stop", Button).display = True
        self.query_one("#why-doing", Static).update(Content.assemble("… ", piece(doing)))

    def finish(self, told: str, *, bad: bool = False) -> None:
        """Say what came of it."""
        self.query_one("#why-stop", Button).display = False
        self.query_one("#why-doing", Static).update(piece(told, WARN if bad else ""))

    def show(self, row: JudgedRow, variants: Sequence[Variant], names: Mapping[str, str]) -> None:
        """List how the sample is judged, as it was first.

        Args:
            row: As this run judged it.
            variants: As derived runs judge it.
            names: Passage id to what a person knows it by.
        """
        options = self.query_one("#why-variants", OptionList)
        highlighted = options.highlighted
        options.clear_options()
        verdict = _reading(row.verdict, row.probability, row.reason or str(row.outcome))
        options.add_option(Option(Content.assemble(verdict, ("  as judged", DIM)), AS_JUDGED))
        for one in variants:
            options.add_option(Option(_variant(one, row, names), one.run_id))
        options.highlighted = highlighted

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Let the screen open a derived run."""
        event.stop()
        if event.option_id is not None and event.option_id != AS_JUDGED:
            self.post_message(self.Opened(event.option_id))


def changed(one: Variant, names: Mapping[str, str]) -> str:
    """What a derived run changed of the evidence."""
    parts = [f"without {names.get(passage, passage)}" for passage in one.without]
    parts += [f"with {names.get(passage, passage)}" for passage in one.added]
    return ", ".join(parts) or "as judged"


def moved(one: Variant, row: JudgedRow) -> str:
    """How far the probability moved, and whether the verdict turned."""
    turned = one.verdict is not None and row.verdict is not None and one.verdict != row.verdict
    if one.probability is None or row.probability is None:
        return "verdict turned" if turned else ""
    by = one.probability - row.probability
    return f"{by:+.2f}{', verdict turned' if turned else ''}".replace("-", "\u2212")


def _variant(one: Variant, row: JudgedRow, names: Mapping[str, str]) -> Content:
    said = one.reason or (one.outcome if one.outcome != "unfinished" else one.status)
    lines = [
        Content.assemble(
            _reading(one.verdict, one.probability, said),
            f"  {moved(one, row)}  ",
            piece(changed(one, names)),
        )
    ]
    lines += [Content.assemble("    ", piece(f"warning: {text}", WARN)) for text in one.warnings]
    return Content("\n").join(lines)


def _reading(verdict: bool | None, probability: float | None, otherwise: str) -> Content:
    if verdict is None:
        return Content.assemble(f"{'':10} ", piece(otherwise, WARN))
    word = (f"{truth(verdict):<5}", f"bold {GOOD if verdict else BAD}")
    if probability is None:
        return Content.assemble(f"{'':10}    - ", word)
    return Content.assemble(bar(probability), f" {probability:.2f} ", word)
