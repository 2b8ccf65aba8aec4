"""One sample of a run: its trace, its evidence, its prompts, and why it was judged so."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.screen import Screen
from textual.widgets import Button, Footer, Static, TabbedContent, TabPane, Tree
from textual.worker import Worker, WorkerState

from offline_judge_tui.reading import PromptText, Reading, read_beside, read_prompt, read_sample
from offline_judge_tui.screens.sample_head import head, problem
from offline_judge_tui.screens.sample_why import Why
from offline_judge_tui.traces.model import Evidence, Node
from offline_judge_tui.widgets.evidence_pane import EvidencePane
from offline_judge_tui.widgets.prompt_pane import PromptPane
from offline_judge_tui.widgets.text_pane import TextPane
from offline_judge_tui.widgets.trace_tree import TraceTree
from offline_judge_tui.widgets.why_pane import WhyPane

if TYPE_CHECKING:
    from offline_judge.settings import Settings

_PAUSE_S = 0.08
"""How long the cursor rests on a call before its prompt is made again."""
_TABS = ("text", "evidence", "prompt", "why")


class SampleScreen(Screen[None]):
    """Shows one sample; goes to its neighbours by itself.

    Args:
        run_id: An id, a prefix that only one run has, or `last`.
        sample_id: A sample that the run has taken up.
    """

    HORIZONTAL_BREAKPOINTS: ClassVar[list[tuple[int, str]] | None] = [
        (0, "-narrow"),
        (110, "-wide"),
    ]
    CSS = """
    SampleScreen {
        & > #sample-head { height: auto; padding: 0 1; background: $panel; }
        & > #sample-problem { padding: 1 2; display: none; }
        & > #sample-body { height: 1fr; }
        &.-failed > #sample-body { display: none; }
        &.-failed > #sample-problem { display: block; }
        & #sample-tree { height: 1fr; }
        & TabbedContent { height: 1fr; }
        & TabPane { padding: 0; height: 1fr; }
        & ContentSwitcher { height: 1fr; }
        &.-narrow #sample-body { layout: vertical; }
        &.-narrow #sample-tree { height: 2fr; }
        &.-narrow TabbedContent { height: 3fr; border-top: solid $panel; }
        &.-wide #sample-body { layout: horizontal; }
        &.-wide #sample-tree { width: 45%; }
        &.-wide TabbedContent { width: 1fr; border-left: solid $panel; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("n", "beside(1, False)", "Next", id="sample.next"),
        Binding("p", "beside(-1, False)", "Previous", show=False, id="sample.previous"),
        Binding("N", "beside(1, True)", "Next ≠ label", id="sample.next_disagreement"),
        Binding("P", "beside(-1, True)", "", show=False, id="sample.previous_disagreement"),
        Binding("c", "cite", "Citation/evidence", id="sample.cite"),
        Binding("e", "evidence(1)", "Next evidence", show=False, id="sample.next_evidence"),
        Binding("E", "evidence(-1)", "", show=False, id="sample.previous_evidence"),
        Binding("x", "without", "Without it", id="sample.without"),
        Binding("a", "own", "Own passage", id="sample.own"),
        Binding("1", "tab('text')", "Text", show=False, id="sample.text"),
        Binding("2", "tab('evidence')", "Evidence", show=False, id="sample.evidence"),
        Binding("3", "tab('prompt')", "Prompt", show=False, id="sample.prompt"),
        Binding("4", "tab('why')", "Why", id="sample.why"),
        Binding("r", "reload", "Read again", show=False, id="sample.reload"),
        Binding("escape", "leave", "Back", id="sample.back"),
    ]

    def __init__(self, run_id: str, sample_id: str) -> None:
        super().__init__()
        self._run_id = run_id
        self._sample_id = sample_id
        self.reading: Reading | None = None
        self.chosen: Evidence | None = None
        self._call = -1
        self._why = Why(self)

    @property
    def settings(self) -> Settings:
        """Where runs are."""
        settings: Settings = self.app.settings  # type: ignore[attr-defined]  # the app of this package has them
        return settings

    def compose(self) -> ComposeResult:
        """The tree, and beside it what its cursor stands on."""
        yield Static("reading the trace …", id="sample-head", markup=False)
        yield Static(id="sample-problem", markup=False)
        with Container(id="sample-body"):
            yield TraceTree(id="sample-tree")
            with TabbedContent(id="sample-tabs"):
                for name, kind in zip(
                    _TABS, (TextPane, EvidencePane, PromptPane, WhyPane), strict=True
                ):
                    with TabPane(name.capitalize(), id=f"tab-{name}"):
                        yield kind(id=f"pane-{name}")
        yield Footer()

    def on_mount(self) -> None:
        """Read the sample."""
        self.query_one(TraceTree).focus()
        self.action_reload()

    # --- reading -------------------------------------------------------------------------------

    def action_reload(self) -> None:
        """Read the sample again, since its run may go on."""
        read = partial(read_sample, self._run_id, self._sample_id, self.settings)
        self._work("sample", f"read sample {self._sample_id}", read)

    def _work(self, group: str, name: str, work: Any) -> Worker[Any]:
        return self.run_worker(
            work, name=name, group=group, exclusive=True, thread=True, exit_on_error=False
        )

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """Take what a thread brought, or say why it brought nothing."""
        worker = event.worker
        if event.state is WorkerState.SUCCESS:
            takers = {"sample": self._take, "prompt": self._take_prompt, "beside": self._go}
            takers.get(worker.group, self._why.take)(worker.result)
        elif event.state is WorkerState.ERROR and worker.error is not None:
            if worker.group == "sample":
                self._fail(worker.error)
            elif worker.group in ("prompt", "beside"):
                self.notify(problem(worker.error).plain, severity="error", markup=False)
            else:
                self._why.fail(worker.group, worker.error)

    def _take(self, reading: Reading) -> None:
        self.reading, self._run_id, self._sample_id = reading, reading.run_id, reading.sample_id
        self.chosen, self._call = None, -1
        self.remove_class("-failed")
        self.query_one("#sample-head", Static).update(head(reading))
        self._why.begin()
        self._choose(None)
        tree = self.query_one(TraceTree)
        tree.show(reading.trace)
        ends = [node for node in reading.trace.root.children if node.kind == "verdict"]
        if first := (ends or reading.trace.root.children)[:1]:
            tree.reveal(first[0])

    def _fail(self, error: BaseException) -> None:
        self.add_class("-failed")
        told = f"sample {self._sample_id} of run {self._run_id}"
        self.query_one("#sample-head", Static).update(problem(told))
        self.query_one("#sample-problem", Static).update(problem(error))

    # --- what the cursor stands on -------------------------------------------------------------

    def on_tree_node_highlighted(self, event: Tree.NodeHighlighted[Node]) -> None:
        """Show what the cursor stands on."""
        node = event.node.data
        if node is None or self.reading is None:
            return
        pane = "text"
        if node.kind == "call":
            pane = "prompt"
            self._show_call(node.event)
        if node.evidence:
            pane = pane if node.kind == "call" else "evidence"
            self._choose(self.reading.trace.evidence.get(node.evidence))
        if node.text or pane == "text":
            label = "".join(piece.text for piece in node.pieces)
            self.query_one(TextPane).show(node.title, node.text or label)
        # Whoever looks at the reasons goes through the tree to choose evidence.
        if self._tabs.active != "tab-why":
            self._tabs.active = f"tab-{pane}"

    def on_tree_node_selected(self, event: Tree.NodeSelected[Node]) -> None:
        """Go from a citation to what it cites."""
        if event.node.data is not None and event.node.data.kind == "citation":
            self.action_cite()

    def _choose(self, one: Evidence | None) -> None:
        if self.reading is None:
            return
        self.chosen = one
        self.query_one(EvidencePane).show(one, self.reading.trace)
        self.query_one(WhyPane).choose(evidence_name(one) if one is not None else "")

    def _show_call(self, number: int) -> None:
        if self.reading is None or number == self._call:
            return
        self._call = number
        self.query_one(PromptPane).begin(self.reading.view.events[number])  # type: ignore[arg-type]  # a node of kind `call` stands for one
        self.set_timer(_PAUSE_S, partial(self._make_prompt, number))

    def _make_prompt(self, number: int) -> None:
        if self.reading is not None and number == self._call:
            events = self.reading.view.events
            make = partial(read_prompt, self._run_id, events, number, self.settings)
            self._work("prompt", f"make prompt {number} again", make)

    def _take_prompt(self, made: PromptText) -> None:
        if self.reading is None or made.number != self._call:
            return
        pane = self.query_one(PromptPane)
        if made.problem:
            pane.fail(made.problem, self.reading.view.events[made.number])  # type: ignore[arg-type]  # as above
        else:
            pane.show(made.messages, made.thinking, made.answer)

    # --- going about ---------------------------------------------------------------------------

    @property
    def _tabs(self) -> TabbedContent:
        return self.query_one("#sample-tabs", TabbedContent)

    def action_tab(self, name: str) -> None:
        """Show a pane."""
        self._tabs.active = f"tab-{name}"

    def action_beside(self, step: int, disagree: bool) -> None:
        """Go to the next or previous sample, or to one whose verdict is not its label."""
        look = partial(read_beside, self._run_id, self._sample_id, self.settings, step, disagree)
        self._work("beside", "look for the next sample", look)

    def _go(self, sample_id: str) -> None:
        if not sample_id:
            self.notify("There is none in that direction.", markup=False)
            return
        self._sample_id = sample_id
        self.action_reload()

    def action_cite(self) -> None:
        """From a citation to its evidence, from evidence to where it is cited."""
        if self.reading is None:
            return
        trace, tree = self.reading.trace, self.query_one(TraceTree)
        node = tree.current
        if node is not None and node.evidence and node.kind != "citation":
            target = trace.citing(node.evidence)
            missing = "The rationale does not cite this."
        else:
            cited = node.evidence if node is not None and node.kind == "citation" else ""
            first = next((one.evidence for one in trace.citations() if one.evidence), "")
            target = trace.found(cited or first) if cited or first else None
            missing = "Nothing in the trace is cited."
        if target is None:
            self.notify(missing, markup=False)
        else:
            tree.reveal(target)

    def action_evidence(self, step: int) -> None:
        """To the next or previous piece of evidence."""
        if self.reading is None:
            return
        trace = self.reading.trace
        keys = list(trace.evidence)
        if not keys:
            self.notify("No search found anything.", markup=False)
            return
        at = keys.index(self.chosen.key) + step if self.chosen is not None else 0
        if (target := trace.found(keys[at % len(keys)])) is not None:
            self.query_one(TraceTree).reveal(target)

    def action_leave(self) -> None:
        """Back to where this was opened from."""
        self.app.pop_screen()

    # --- why -----------------------------------------------------------------------------------

    def action_without(self) -> None:
        """Judge again without the chosen piece of evidence."""
        self.action_tab("why")
        self._why.ask_without()

    def action_own(self) -> None:
        """Judge again with a passage of one's own."""
        self.action_tab("why")
        self._why.ask_own()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """The buttons of the pane of reasons."""
        asked = {
            "why-without": self._why.ask_without,
            "why-own": self._why.ask_own,
            "why-stop": self._why.stop,
        }.get(event.button.id or "")
        if asked is not None:
            asked()

    def on_why_pane_opened(self, event: WhyPane.Opened) -> None:
        """Look at a derived run's sample."""
        if self.reading is not None:
            self.app.open("sample", run_id=event.run_id, sample_id=self.reading.sample_id)  # type: ignore[attr-defined]  # the app of this package has it


def evidence_name(one: Evidence) -> str:
    """What a person knows a piece of evidence by."""
    name = f"[{one.name}] " if one.name else ""
    return f"{name}{one.passage.title or one.passage.id}"
