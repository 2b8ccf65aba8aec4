"""How large files and functions may grow, and what each must say about itself."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

FILE_LINES = 400
FUNCTION_LINES = 60
PARAMETERS = 6
SOURCES = ("offline_judge", "tui", "tests", "scripts")

Function = ast.FunctionDef | ast.AsyncFunctionDef


def source_files(root: Path) -> list[Path]:
    """All Python files the rules hold for."""
    return sorted(path for name in SOURCES for path in (root / name).rglob("*.py"))


def violations(path: Path, root: Path) -> Iterator[str]:
    """Each rule that the file breaks, as `path:line what`."""
    text = path.read_text("utf-8")
    name = path.relative_to(root).as_posix()
    tree = ast.parse(text, filename=name)
    lines = len(text.splitlines())
    if lines > FILE_LINES:
        yield f"{name}:1 has {lines} lines, more than {FILE_LINES}"
    if name.startswith(("offline_judge/", "tui/", "scripts/")) and not ast.get_docstring(tree):
        yield f"{name}:1 has no module docstring"
    for node in ast.walk(tree):
        if isinstance(node, Function):
            for what in _function_violations(node, tested=name.startswith("tests/")):
                yield f"{name}:{node.lineno} {node.name} {what}"


def _function_violations(node: Function, *, tested: bool) -> Iterator[str]:
    lines = (node.end_lineno or node.lineno) - node.lineno + 1
    if lines > FUNCTION_LINES:
        yield f"has {lines} lines, more than {FUNCTION_LINES}"
    arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    parameters = [a.arg for a in arguments if a.arg not in {"self", "cls"}]
    # A test takes as many fixtures as it needs.
    if len(parameters) > PARAMETERS and not tested:
        yield f"takes {len(parameters)} parameters, more than {PARAMETERS}"


def main() -> int:
    """Print every violation; 1 where there is one."""
    root = Path(__file__).resolve().parent.parent
    found = [line for path in source_files(root) for line in violations(path, root)]
    sys.stdout.writelines(f"{line}\n" for line in found)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
