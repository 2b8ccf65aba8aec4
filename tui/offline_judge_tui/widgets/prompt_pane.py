"""A request to the judge: the prompt exactly as it was sent, and the raw answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Collapsible, Static

from offline_judge.domain.numbers import count
from offline_judge_tui.text import DIM, WARN, pairs, piece, whole

if TYPE_CHECKING:
    from offline_judge.domain.events import CallFinished
    from offline_judge.domain.message import Message


class PromptPane(VerticalScroll):
    """Shows one call: first what the trace says of it, then its prompt once that is made again."""

    DEFAULT_CSS = """
    PromptPane {
        padding: 0 1;
        & > Static { margin: 0 0 1 0; }
        & > Collapsible { padding: 0; margin: 0 0 1 0; border-top: none; }
        & Contents { padding: 0 2; }
    }
    """

    shown: str = ""
    """Prompt and answer in full, as they were sent and came."""

    def compose(self) -> ComposeResult:
        """Facts, prompt, thinking and answer."""
        yield Static("No call to the judge is chosen.", id="prompt-facts", markup=False)
        yield Static(id="prompt-messages", markup=False)
        with Collapsible(title="thinking", id="prompt-thinking"):
            yield Static(id="prompt-thought", markup=False)
        yield Static(id="prompt-answer", markup=False)

    def on_mount(self) -> None:
        """Nothing was thought yet."""
        self.query_one("#prompt-thinking").display = False

    def begin(self, call: CallFinished) -> None:
        """Show what is known of a call before its prompt is made again."""
        from offline_judge_tui.traces.calls import facts

        self.shown = ""
        self._part("facts").update(pairs(facts(call)))
        self._part("messages").update(Content.styled("making the prompt again …", DIM))
        self._think("")
        self._answer(call.text)
        self.scroll_home(animate=False)

    def show(self, messages: tuple[Message, ...], thinking: str, answer: str) -> None:
        """Show the prompt as it was sent, and thinking apart from the answer."""
        sent = [Content.assemble(_heading(m.role), whole(m.content)) for m in messages]
        self._part("messages").update(Content("\n\n").join(sent))
        self._think(thinking)
        self._answer(answer)
        texts = [f"[{message.role}]\n{message.content}" for message in messages]
        said = [*([f"[thinking]\n{thinking}"] if thinking else []), f"[answer]\n{answer}"]
        self.shown = "\n\n".join([*texts, *said])

    def fail(self, why: str, call: CallFinished) -> None:
        """Say why the prompt cannot be shown, and show what filled it instead."""
        values = [(name, _value(value)) for name, value in call.values.items()]
        filled = [Content.assemble(_heading(name), whole(text)) for name, text in values]
        told = Content.assemble(piece(why, WARN), "\n", ("What filled it:", DIM))
        self._part("messages").update(Content("\n\n").join([told, *filled]))
        texts = [f"[{name}]\n{text}" for name, text in values]
        self.shown = "\n\n".join([*texts, f"[answer]\n{call.text}"])

    def fold(self) -> bool:
        """Fold or unfold the thinking; false where there is none."""
        thinking = self.query_one("#prompt-thinking", Collapsible)
        if thinking.display:
            thinking.collapsed = not thinking.collapsed
        return bool(thinking.display)

    def _think(self, thinking: str) -> None:
        folded = self.query_one("#prompt-thinking", Collapsible)
        folded.display = bool(thinking)
        folded.title = f"thinking, {count(len(thinking), 'character')}"
        folded.collapsed = True
        self._part("thought").update(whole(thinking))

    def _answer(self, answer: str) -> None:
        widget = self._part("answer")
        widget.display = bool(answer)
        widget.update(Content.assemble(_heading("raw answer"), whole(answer)))

    def _part(self, name: str) -> Static:
        return self.query_one(f"#prompt-{name}", Static)


def _heading(name: str) -> Content:
    return Content.assemble(("── ", DIM), piece(name, "bold"), (" ──\n", DIM))


def _value(value: Any) -> str:
    """A value that filled a prompt, as `values` of a call keep it."""
    if isinstance(value, dict) and {"untrusted", "text"} <= value.keys():
        return str(value["text"])
    if isinstance(value, list):
        return "\n".join(f"- {_value(item)}" for item in value)
    return str(value)
