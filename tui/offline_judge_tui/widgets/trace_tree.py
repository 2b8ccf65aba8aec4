"""The trace of a sample as a tree; children are made when they are first seen."""

from __future__ import annotations

from typing import ClassVar

from rich.cells import cell_len
from rich.style import Style
from rich.text import Text
from textual.geometry import Region
from textual.widgets import Tree
from textual.widgets.tree import TreeNode

from offline_judge.domain.visible import visible
from offline_judge_tui.traces.model import Node, Piece, Trace

AT_ONCE = 200
"""Children of a node that are made at once; a last line offers the next."""


class TraceTree(Tree[Node]):
    """Walks a trace. Its cursor says what the panes beside it show."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "trace--dim",
        "trace--strong",
        "trace--good",
        "trace--bad",
        "trace--warn",
        "trace--cited",
    }

    DEFAULT_CSS = """
    TraceTree {
        padding: 0 1;
        overflow-x: hidden;
        & > .trace--dim { color: $text-muted; }
        & > .trace--strong { text-style: bold; }
        & > .trace--good { color: $text-success; text-style: bold; }
        & > .trace--bad { color: $text-error; text-style: bold; }
        & > .trace--warn { color: $text-warning; }
        & > .trace--cited { color: $text-accent; text-style: bold; }
    }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(Text("trace"), id=id)
        self.show_root = False
        self.guide_depth = 2
        self._made: dict[int, int] = {}
        self._trace: Trace | None = None

    def show(self, trace: Trace) -> None:
        """Show another trace, from its beginning."""
        self._trace = trace
        self._made.clear()
        # Else a cursor that comes to stand on the same line again would not be told of.
        self.unselect()
        self.clear()
        self.root.data = trace.root
        self._make(self.root, AT_ONCE)
        self.scroll_home(animate=False)

    def reveal(self, node: Node) -> None:
        """Bring a node into sight and put the cursor on it."""
        if self._trace is None:
            return
        at = self.root
        for step in self._trace.path(node):
            children = at.data.children if at.data is not None else []
            index = next(n for n, child in enumerate(children) if child is step)
            if index >= self._made.get(at.id, 0):
                self._make(at, (index // AT_ONCE + 1) * AT_ONCE)
            if at is not self.root and not at.is_expanded:
                at.expand()
            at = at.children[index]
        if at is self.root or self.last_line < 0:
            return
        self.move_cursor(at)
        # When the tree has got its height, which it may not have yet.
        self.call_after_refresh(self._bring, at)

    @property
    def current(self) -> Node | None:
        """What the cursor stands on."""
        return self.cursor_node.data if self.cursor_node is not None else None

    def render_label(self, node: TreeNode[Node], base_style: Style, style: Style) -> Text:
        """Draw the pieces of a label, each as what it means."""
        label = Text(no_wrap=True, end="")
        if node.allow_expand:
            icon = self.ICON_NODE_EXPANDED if node.is_expanded else self.ICON_NODE
            label.append(icon, base_style + Style.from_meta({"toggle": True}))
        for piece in node.data.pieces if node.data is not None else ():
            tone = (
                self.get_component_rich_style(f"trace--{piece.tone}", partial=True)
                if piece.tone
                else Style.null()
            )
            label.append(visible(piece.text), tone + style)
        return label

    def get_label_width(self, node: TreeNode[Node]) -> int:
        """Width of a label without drawing it, since a tree has as many as lines."""
        pieces = node.data.pieces if node.data is not None else ()
        icon = 2 if node.allow_expand else 0
        return icon + sum(cell_len(visible(piece.text)) for piece in pieces)

    def on_tree_node_expanded(self, event: Tree.NodeExpanded[Node]) -> None:
        """Make the children that are now to be seen."""
        if event.node.id not in self._made:
            self._make(event.node, AT_ONCE)

    def on_tree_node_selected(self, event: Tree.NodeSelected[Node]) -> None:
        """Make the next children where that was asked for."""
        at, parent = event.node, event.node.parent
        if at.data is None or at.data.kind != "more" or parent is None:
            return
        event.stop()
        first = self._made.get(parent.id, 0)
        self._make(parent, first + AT_ONCE)
        if self.last_line >= 0:
            self.move_cursor(parent.children[first])

    def _bring(self, at: TreeNode[Node]) -> None:
        """Scroll to a node and as much of what is open under it as there is room for."""
        lines = 1 + (len(at.children) if at.is_expanded else 0)
        region = Region(0, at.line, 1, max(1, min(lines, self.size.height)))
        self.scroll_to_region(region, animate=False, force=True, x_axis=False)

    def _make(self, at: TreeNode[Node], upto: int) -> None:
        """Make the children of a node up to a number, and a line for those that are left."""
        children = at.data.children if at.data is not None else []
        have = self._made.get(at.id, 0)
        if have and len(at.children) > have:
            at.children[have].remove()
        for child in children[have:upto]:
            self._add(at, child)
        if (left := len(children) - upto) > 0:
            more = Node("more", (Piece(f"… {left:,} more: enter shows the next", "dim"),))
            at.add_leaf(Text("more"), more)
        self._made[at.id] = min(upto, len(children))

    def _add(self, at: TreeNode[Node], child: Node) -> None:
        if not child.children:
            at.add_leaf(Text(child.kind), child)
            return
        node = at.add(Text(child.kind), child, expand=child.open)
        if child.open:
            self._make(node, AT_ONCE)
