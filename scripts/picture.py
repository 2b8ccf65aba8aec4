"""Turns what a command printed into an SVG picture of a terminal.

offline-judge demo 2>&1 | .venv/bin/python scripts/picture.py docs/demo.svg "./scripts/demo"
"""

from __future__ import annotations

import re
import sys
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.text import Text

# Green where verdict and label agree would hide what the figures say; so only the head is marked.
_HEAD = re.compile(r"^question\s+response\s+label")


def picture(printed: str, title: str) -> str:
    """The SVG of lines as a terminal of their width would show them."""
    lines = printed.rstrip().splitlines()
    width = max(map(len, lines))
    console = Console(record=True, width=width, file=StringIO(), highlight=False)
    for line in lines:
        console.print(Text(line, style="bold" if _HEAD.match(line) else ""), soft_wrap=True)
    return portable(console.export_svg(title=title))


def portable(svg: str) -> str:
    """An SVG that fetches nothing when somebody looks at it: without fonts from elsewhere."""
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)
    return svg.replace("font-family: Fira Code, monospace", "font-family: monospace")


def main() -> int:
    """Read stdin, write the file that is named."""
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    Path(sys.argv[1]).write_text(picture(sys.stdin.read(), sys.argv[2]), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
