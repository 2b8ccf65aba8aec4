"""One sample of a run: its trace, its evidence, its prompts, and why it was judged so."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, ClassVar, cast

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container
from textual.widgets import Button, Footer, Static, TabbedContent, TabPane, Tree

from offline_judge_tui.bridge import Desk
from offline_judge_tui.keys import binding
from offline_judge_tui.reading import PromptText, Reading, read_beside, read_prompt, read_sample
from offline_judge_tui.screens.sample_head import head, problem
from offline_judge_tui.screens.sample_why import Why
from offline_judge_tui.traces.model import Evidence, Node
from offline_judge_tui.widgets.evidence_pane import EvidencePane
from offline_judge_tui.widgets.prompt_pane import PromptPane
from offline_judge_tui.widgets.text_pane import TextPane
from offline_judge_tui.widgets.title_bar import TitleBar
from offline_judge_tui.widgets.trace_tree import TraceTree
from offline_judge_tui.widgets.why_pane import WhyPane

if TYPE_CHECKING:
    from offline_judge.domain.events import CallFinished
    from offline_judge.errors import OfflineJudgeError

_REST_S = 0.08
"""How long the cursor rests on a call before its prompt is made again."""
_PANES = {"text": TextPane, "evidence": EvidencePane, "prompt": PromptPane, "why": WhyPane}


class SampleScreen(Desk):
    """One sample; goes to its neighbours by itself.

    Args:
        run_id: An id, a prefix that only one run has, or `last`.
        sample_id: A sample that the run has taken up.
    """

    DEFAULT_CSS: ClassVar[str] = """
    SampleScreen {
        & > #sample-head { height: auto; padding: 0 1; background: $panel; }
        & > #sample-problem { padding: 1 2; display: none; }
        & > #sample-body { height: 1fr; }
        &.-failed > #sample-body { display: none; }
        &.-failed > #sample-problem { display: block; }
        & TraceTree { height: 2fr; }
        & TabbedContent { height: 3fr; }
        & TabPane { padding: 0; height: 1fr; }
        & ContentSwitcher { height: 1fr; }
        &.-wide #sample-body { layout: horizontal; }
        &.-wide TraceTree { width: 45%; height: 1fr; }
        &.-wide TabbedContent { width: 1fr; height: 1fr; border-left: solid $panel; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        binding("sample.next", "beside(False, True)"),
        binding("sample.previous", "beside(True, True)"),
        binding("sample.after", "beside(False, False)"),
        binding("sample.before", "beside(True, False)"),
        binding("sample.cited"),
        binding("sample.found", "found(1)"),
        binding("sample.found_before", "found(-1)"),
        binding("sample.verdict"),
        *(binding(f"sample.{name}", f"pane('{name}')") for name in _PANES),
        binding("sample.without"),
        binding("sample.own"),
        binding("sample.thinking"),
        binding("sample.copy"),
        binding("sample.reload"),
    ]

    def __init__(self, run_id: str, sample_id: str) -> None:
        super().__init__()
        self._run_id = run_id
        self._sample_id = sample_id
        self.reading: Reading | None = None
        self.chosen: Evidence | None = None
        self._call = -1
        self._why = Why(self)

    def compose(self) -> ComposeResult:
        """The tree, and beside it what its cursor stands on."""
        yield TitleBar("Runs", self._run_id, self._sample_id)
        yield Static("reading the trace …", id="sample-head", markup=False)
        yield Static(id="sample-problem", markup=False)
        with Container(id="sample-body"):
            yield TraceTree(id="sample-tree")
            with TabbedContent(id="sample-panes"):
                for name, kind in _PANES.items():
                    with TabPane(name.capitalize(), id=f"tab-{name}"):
                        yield kind(id=f"pane-{name}")
        yield Footer()

    def on_mount(self) -> None:
        """Read the sample once the screen is seen."""
        if not self.query(TraceTree):
            return  # it goes before it has come
        self.query_one(TraceTree).focus()
        self.call_after_refresh(self.action_reload)

    # What is read

    def action_reload(self) -> None:
        """Read the sample again, since its run may go on."""
        run_id, sample_id, settings = self._run_id, self._sample_id, self.settings
        self.have_done(
            "reading the sample",
            lambda _job: read_sample(run_id, sample_id, settings),
            self._take,
            self._fail,
        )

    def _take(self, reading: Reading) -> None:
        self.reading, self._run_id, self._sample_id = reading, reading.run_id, reading.sample_id
        self._call = -1
        self.remove_class("-failed")
        self.query_one(TitleBar).show("Runs", self._run_id, self._sample_id)
        self.query_one("#sample-head", Static).update(head(reading))
        self._choose(None)
        self._why.begin()
        self.query_one(TraceTree).show(reading.trace)
        self.action_verdict()

    def _fail(self, error: OfflineJudgeError) -> None:
        self.reading = None
        self.add_class("-failed")
        self.query_one(TitleBar).show("Runs", self._run_id, self._sample_id)
        self.query_one("#sample-head", Static).update("This sample cannot be shown.")
        self.query_one("#sample-problem", Static).update(problem(error))

    # What the cursor stands on

    def on_tree_node_highlighted(self, event: Tree.NodeHighlighted[Node]) -> None:
        """Show what the cursor stands on."""
        node = event.node.data
        # What was posted before another sample came is of no use any more.
        at = self.query_one(TraceTree).cursor_node
        if node is None or self.reading is None or event.node is not at:
            return
        pane = {"call": "prompt", "evidence": "evidence", "citation": "evidence"}.get(node.kind)
        if node.kind == "call":
            self._show_call(node.event)
        if node.evidence:
            self._choose(self.reading.trace.evidence.get(node.evidence))
        if pane is None:
            self.query_one(TextPane).show(node.title if node.text else "", node.text or node.label)
        # Whoever looks for reasons goes through the tree to choose evidence.
        if self._panes.active != "tab-why":
            self._panes.active = f"tab-{pane or 'text'}"

    def on_tree_node_selected(self, event: Tree.NodeSelected[Node]) -> None:
        """Go from a citation to what it cites."""
        if event.node.data is not None and event.node.data.kind == "citation":
            self.action_cited()

    def _choose(self, one: Evidence | None) -> None:
        if self.reading is not None:
            self.chosen = one
            self.query_one(EvidencePane).show(one, self.reading.trace)
            self.query_one(WhyPane).choose(one.known_as if one is not None else "")

    def _show_call(self, number: int) -> None:
        if number != self._call:
            self._call = number
            self.query_one(PromptPane).begin(self._call_event(number))
            self.set_timer(_REST_S, partial(self._make_prompt, number))

    def _make_prompt(self, number: int) -> None:
        if self.reading is None or number != self._call:
            return
        run_id, events, settings = self._run_id, self.reading.view.events, self.settings
        self.have_done(
            "making a prompt again",
            lambda _job: read_prompt(run_id, events, number, settings),
            self._take_prompt,
        )

    def _take_prompt(self, made: PromptText) -> None:
        if self.reading is None or made.number != self._call:
            return
        pane = self.query_one(PromptPane)
        if made.problem:
            pane.fail(made.problem, self._call_event(made.number))
        else:
            pane.show(made.messages, made.thinking, made.answer)

    def _call_event(self, number: int) -> CallFinished:
        """Only nodes of kind `call` have their number asked for."""
        events = self.reading.view.events if self.reading is not None else ()
        return cast("CallFinished", events[number])

    # Going about

    @property
    def _panes(self) -> TabbedContent:
        return self.query_one("#sample-panes", TabbedContent)

    def action_pane(self, name: str) -> None:
        """Show a pane."""
        self._panes.active = f"tab-{name}"

    def action_beside(self, back: bool, disagree: bool) -> None:
        """Go to the sample behind or before this, or to one whose verdict is not its label."""
        run_id, sample_id, settings = self._run_id, self._sample_id, self.settings
        self.have_done(
            "looking for another sample",
            lambda _job: read_beside(run_id, sample_id, settings, back=back, disagree=disagree),
            self._go,
        )

    def _go(self, sample_id: str | None) -> None:
        if sample_id is None:
            self.say("There is none in that direction.")
            return
        self._sample_id = sample_id
        self.action_reload()

    def action_verdict(self) -> None:
        """To the verdict, or where there is none to the beginning."""
        if self.reading is not None:
            nodes = self.reading.trace.root.children
            ends = [node for node in nodes if node.kind == "verdict"]
            for node in (ends[-1:] or nodes)[:1]:
                self.query_one(TraceTree).reveal(node)

    def action_cited(self) -> None:
        """From a citation to its evidence, from evidence to where it is cited."""
        if self.reading is None:
            return
        trace, tree = self.reading.trace, self.query_one(TraceTree)
        at = tree.current
        if at is not None and at.kind in ("evidence", "call") and at.evidence:
            target = trace.citing(at.evidence)
            missing = "The rationale does not cite this."
        else:
            cited = [one.evidence for one in trace.citations() if one.evidence]
            if at is not None and at.kind == "citation":
                cited = [at.evidence]
            target = trace.found(cited[0]) if cited else None
            missing = "The rationale cites nothing that is in the trace."
        if target is None:
            self.say(missing)
        else:
            tree.reveal(target)

    def action_found(self, step: int) -> None:
        """To the next or previous piece of evidence."""
        keys = list(self.reading.trace.evidence) if self.reading is not None else []
        if self.reading is None or not keys:
            self.say("No search found anything.")
            return
        place = keys.index(self.chosen.key) + step if self.chosen is not None else 0
        target = self.reading.trace.found(keys[place % len(keys)])
        if target is not None:
            self.query_one(TraceTree).reveal(target)

    def action_thinking(self) -> None:
        """Fold or unfold what the judge thought."""
        if not self.query_one(PromptPane).fold():
            self.say("Nothing was thought in the call that is shown.")

    def action_copy(self) -> None:
        """Copy what the pane shows, in full."""
        name = self._panes.active.removeprefix("tab-")
        text: str = getattr(self.query_one(f"#pane-{name}"), "shown", "")
        if text:
            self.home.copies.copy(text, name)
        else:
            self.say("There is nothing to copy here.")

    # Why

    def action_without(self) -> None:
        """Judge again without the chosen piece of evidence."""
        self.action_pane("why")
        self._why.ask_without()

    def action_own(self) -> None:
        """Judge again with a passage of one's own."""
        self.action_pane("why")
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
        self.home.open("sample", run_id=event.run_id, sample_id=self._sample_id)
