"""What the sample screen shows of a trace: nodes of a tree, pieces of text, evidence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from offline_judge.domain.events import AnyEvent
    from offline_judge.domain.evidence import Passage

Tone = Literal["", "dim", "strong", "good", "bad", "warn", "cited"]
"""What a piece of text means; a widget picks the colour, and a word or sign says it too."""

NodeKind = Literal[
    "text", "attempt", "round", "search", "evidence", "call", "verdict", "citation", "event", "more"
]


@dataclass(frozen=True)
class Piece:
    """A stretch of a label, as it came: whoever draws it makes it safe."""

    text: str
    tone: Tone = ""


@dataclass(eq=False)
class Node:
    """A line of the tree and what stands behind it.

    Attributes:
        kind: What it is; says which pane shows it.
        pieces: Its label, on one line.
        title: Names `text`.
        text: What the text pane shows of it, whole; empty for nothing beyond the label.
        event: Index of its event among the sample's; -1 for none.
        evidence: Key of the evidence it is or cites; empty for none.
        children: What lies under it.
        open: Whether that is to be seen at first.
    """

    kind: NodeKind
    pieces: tuple[Piece, ...]
    title: str = ""
    text: str = ""
    event: int = -1
    evidence: str = ""
    children: list[Node] = field(default_factory=list)
    open: bool = False

    @property
    def label(self) -> str:
        """Its line as plain text, as it came."""
        return "".join(piece.text for piece in self.pieces)

    def walk(self) -> Iterator[Node]:
        """Itself and all below it, in the order they stand in the tree."""
        waiting = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting.extend(reversed(node.children))


@dataclass(frozen=True)
class Evidence:
    """A passage that a search found, and what became of it.

    Attributes:
        key: Names it in its trace.
        name: Its id in the notes (`E1`); empty where it did not get there.
        passage: The passage.
        round: In which it was found, as rank, score, query and provider say.
        rank: From 1.
        score: The provider's own.
        query: What was searched for.
        provider: Who searched.
        searched: When, UTC.
        found_at: When it was found first, where it comes out of the record of evidence.
        cached: Found for another query than this one.
        reused: The run had made this very search before.
        relevance: The judge's probability that it says what the answer is.
        shown: How much of its text the judge was shown, in characters; None where the trace does
            not tell.
        cited: The rationale cites it.
    """

    key: str
    name: str
    passage: Passage
    round: int
    rank: int
    score: float
    query: str
    provider: str
    searched: str
    found_at: str = ""
    cached: bool = False
    reused: bool = False
    relevance: float | None = None
    shown: int | None = None
    cited: bool = False

    @property
    def known_as(self) -> str:
        """What a person knows it by: its name in the notes and its title, or its id."""
        title = self.passage.title or self.passage.id
        return f"[{self.name}] {title}" if self.name else title


@dataclass(frozen=True)
class Trace:
    """A sample's trace, ready to be shown.

    Attributes:
        events: As they were recorded.
        root: Has the tree's first level as children.
        evidence: All passages by key, in the order they were found.
        response: What was judged.
    """

    events: tuple[AnyEvent, ...]
    root: Node
    evidence: dict[str, Evidence]
    response: str = ""

    def citations(self) -> tuple[Node, ...]:
        """The places that cite evidence, in order."""
        return tuple(node for node in self.root.walk() if node.kind == "citation")

    def citing(self, key: str) -> Node | None:
        """The place that cites a piece of evidence."""
        return next((node for node in self.citations() if node.evidence == key), None)

    def found(self, key: str) -> Node | None:
        """The place where a piece of evidence was found; in its round, if it got into the notes."""
        nodes = self.root.walk()
        return next((n for n in nodes if n.kind == "evidence" and n.evidence == key), None)

    def path(self, target: Node) -> tuple[Node, ...]:
        """The nodes from the first level down to one, itself included; empty if not in here."""
        waiting: list[tuple[Node, ...]] = [(node,) for node in self.root.children]
        while waiting:
            path = waiting.pop()
            if path[-1] is target:
                return path
            waiting.extend((*path, child) for child in path[-1].children)
        return ()
