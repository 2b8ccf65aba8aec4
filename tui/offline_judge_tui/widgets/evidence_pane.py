"""A piece of evidence: where it comes from, how old it is, and its passage in its text."""

from __future__ import annotations

from itertools import pairwise

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content, Span
from textual.widgets import Static

from offline_judge.domain.ages import day, earlier
from offline_judge.domain.numbers import count
from offline_judge.domain.visible import visible
from offline_judge_tui.text import DIM, LONGEST, pairs, piece, whole
from offline_judge_tui.traces.around import around, shared_words
from offline_judge_tui.traces.model import Evidence, Trace

_NOTHING = (
    "No evidence is chosen. `e` goes to the first piece, `c` from a citation to what it cites."
)


class EvidencePane(VerticalScroll):
    """Shows one piece of evidence; the passage stands in a frame, what is around it outside."""

    DEFAULT_CSS = """
    EvidencePane {
        padding: 0 1;
        & > #evidence-facts { margin: 0 0 1 0; }
        & > .evidence-around { color: $text-muted; padding: 0 2; }
        & > #evidence-passage { border-left: thick $primary; padding: 0 1; }
        & > #evidence-passage.-cited { border-left: thick $accent; background: $boost; }
    }
    """

    shown: str = ""
    """The passage in full, as it was found."""

    def compose(self) -> ComposeResult:
        """Name, facts, and the passage between what stands around it."""
        yield Static(_NOTHING, id="evidence-name", markup=False)
        yield Static(id="evidence-facts", markup=False)
        yield Static(id="evidence-before", classes="evidence-around", markup=False)
        yield Static(id="evidence-passage", markup=False)
        yield Static(id="evidence-behind", classes="evidence-around", markup=False)

    def show(self, one: Evidence | None, trace: Trace) -> None:
        """Show another piece of evidence, or that none is chosen."""
        self.shown = one.passage.text if one is not None else ""
        name, facts = self.query_one("#evidence-name", Static), self._part("facts")
        passage = self._part("passage")
        passage.display = facts.display = one is not None
        if one is None:
            name.update(_NOTHING)
            self._surround("", "")
            return
        name.update(_name(one))
        facts.update(pairs(_facts(one)))
        passage.set_class(one.cited, "-cited")
        passage.update(_passage(one, trace.response))
        beside = around(one, trace.evidence.values())
        self._surround(beside.before, beside.behind)
        self.scroll_home(animate=False)

    def _surround(self, before: str, behind: str) -> None:
        for part, text in (("before", before), ("behind", behind)):
            widget = self._part(part)
            widget.display = bool(text)
            widget.update(whole(text))

    def _part(self, name: str) -> Static:
        return self.query_one(f"#evidence-{name}", Static)


def _name(one: Evidence) -> Content:
    name = f"[{one.name}] " if one.name else ""
    said = "★ cited by the rationale" if one.cited else "not cited" if one.name else "not noted"
    return Content.assemble((name, "bold"), piece(one.passage.title, "bold"), (f"  {said}", DIM))


def _facts(one: Evidence) -> list[tuple[str, str]]:
    passage = one.passage
    place = f"document {passage.document_id}, characters {passage.start:,}-{passage.end:,}"
    where = f"round {one.round}, " if one.round else ""
    found = [
        ("source", passage.source),
        ("place", place if passage.document_id else ""),
        ("address", passage.url),
        ("dated", passage.date),
        ("found for", f"“{one.query}” ({where}rank {one.rank}, score {one.score:.3g})"),
        ("found", _when(one)),
        ("says the answer", "" if one.relevance is None else f"{one.relevance:.2f}"),
        ("shown to the judge", _shown(one)),
        ("passage", passage.id),
    ]
    return [(name, value) for name, value in found if value]


def _when(one: Evidence) -> str:
    searched = f"{day(one.searched)} UTC, by {one.provider}"
    again = ", searched before in this run" if one.reused else ""
    if not one.found_at:
        return f"{searched}{again}"
    age = earlier(one.found_at, one.searched)
    other = " for another query" if one.cached else ""
    old = f" ({age})" if age else ""
    return f"{day(one.found_at)} UTC{old}{other}, from the record at {day(one.searched)}{again}"


def _shown(one: Evidence) -> str:
    if one.shown is None:
        return ""
    length = len(one.passage.text)
    return "all of it" if one.shown >= length else f"the first {count(one.shown, 'character')}"


def _passage(one: Evidence, response: str) -> Content:
    """The passage; words of the response are underlined, what the judge did not see is dim."""
    text = one.passage.text[:LONGEST]
    marks = [(start, end, "underline") for start, end in shared_words(response, text)]
    if one.shown is not None and one.shown < len(text):
        marks.append((one.shown, len(text), DIM))
    cuts = sorted({0, len(text), *(cut for start, end, _ in marks for cut in (start, end))})
    # Made visible piece by piece: a stand-in may be longer than what it stands for.
    drawn, at = [], {0: 0}
    for start, end in pairwise(cuts):
        drawn.append(visible(text[start:end], lines=True))
        at[end] = at[start] + len(drawn[-1])
    spans = [Span(at[start], at[end], style) for start, end, style in marks]
    content = Content("".join(drawn), spans)
    left = len(one.passage.text) - len(text)
    more = f"\n… {left:,} more characters are not drawn; write all to a file."
    return Content.assemble(content, (more, DIM)) if left else content
