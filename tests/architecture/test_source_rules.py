"""Rules on the text of the sources: exceptions, ignores, names, and words that stay out."""

import ast
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "offline_judge"
BROAD = {"Exception", "BaseException"}
# File -> why it may catch everything. Each place says its own reason in a comment as well.
BROAD_ALLOWED = {
    "offline_judge/cli/ask.py": "a listener must not raise; it is told after the run",
    "offline_judge/checks/findings.py": "one check of the doctor's must not end the others",
    "offline_judge/registry.py": "modules of other packages, behind their entry points",
    "offline_judge/cli/main.py": "the command line's top level",
    "offline_judge/retrieval/embedding/onnx.py": "tokenizers raises nothing more special",
    "offline_judge/runner/listeners.py": "listeners are the caller's code",
    "offline_judge/runner/loop.py": "the sample boundary",
    "tui/offline_judge_tui/bridge.py": "a fault in work done for a screen must not end the UI",
}
# Built from pieces, so that this file may be searched too.
FORBIDDEN = (
    "py" + r"pi\.org",
    "python" + "hosted",
    "/opt/" + "py" + "pi",
    r"(?<![\w.$}~-])/(?:wo" + "rk|ro" + r"ot|ho" + r"me/\w+|Us" + r"ers/\w+)/",
)
REASONED_IGNORE = re.compile(r"#\s*type:\s*ignore\[[\w, -]+\]\s+#\s*\S+")


def _tracked() -> list[Path]:
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout: what is tracked is not known")
    names = listed.stdout.decode().split("\0")
    return [path for name in names if name and (path := ROOT / name).is_file()]


def _python(*folders: str) -> list[Path]:
    return sorted(path for name in folders for path in (ROOT / name).rglob("*.py"))


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def broad_handlers(source: str) -> list[int]:
    """Lines of handlers that catch everything and keep it; one that raises it again may tidy up."""
    lines = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.ExceptHandler) or ast.unparse(node.body[-1]) == "raise":
            continue
        kinds = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
        if any(kind is None or ast.unparse(kind) in BROAD for kind in kinds):
            lines.append(node.lineno)
    return lines


def explained(source: str, line: int) -> bool:
    """Does the handler in this line, or one of the two lines around it, carry a reason?"""
    near = source.splitlines()[line - 2 : line + 1]
    comments = [part.split("#", 1)[1] for part in near if "#" in part]
    reasons = [re.sub(r"noqa: ?[A-Z0-9, ]+", "", comment).strip(" -:#") for comment in comments]
    return any(len(reason.split()) >= 3 for reason in reasons)


def test_everything_is_caught_only_where_it_is_allowed_and_explained() -> None:
    offences, used = [], set()
    for path in _python("offline_judge", "tui"):
        source = path.read_text("utf-8")
        for line in broad_handlers(source):
            used.add(_name(path))
            if _name(path) not in BROAD_ALLOWED or not explained(source, line):
                offences.append(f"{_name(path)}:{line}")
    assert offences == []
    assert set(BROAD_ALLOWED) == used, "an allowance that nothing needs"


@pytest.mark.parametrize(
    "handler", ["except:", "except Exception:", "except (ValueError, BaseException) as error:"]
)
def test_a_broad_handler_is_found_and_noqa_is_no_reason(handler: str) -> None:
    source = f"try:\n    x = 1\n{handler}  # noqa: BLE001\n    x = 2\n"
    assert broad_handlers(source) == [3]
    assert not explained(source, 3)


def test_a_handler_that_raises_again_is_no_broad_one() -> None:
    assert broad_handlers("try:\n    x = 1\nexcept BaseException:\n    x = 2\n    raise\n") == []


def test_a_type_ignore_has_a_code_and_a_reason() -> None:
    offences = [
        f"{_name(path)}:{number}"
        for path in _python("offline_judge", "tui", "tests", "scripts")
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if re.search(r"#\s*type:\s*ig" + "nore", line) and not REASONED_IGNORE.search(line)
    ]
    assert offences == []


def test_no_name_of_a_test_file_occurs_twice() -> None:
    # The type checker and pytest both know these modules by their bare names.
    counts = Counter(path.name for path in _python("tests", "scripts"))
    assert [name for name, count in counts.items() if count > 1] == []


def test_no_host_of_a_package_registry_and_no_absolute_path_of_a_machine() -> None:
    pattern = re.compile("|".join(FORBIDDEN))
    offences = []
    for path in _tracked():
        text = path.read_bytes().decode("utf-8", "replace")
        for number, line in enumerate(text.splitlines(), 1):
            if found := pattern.search(line):
                offences.append(f"{_name(path)}:{number} {found.group()}")
    assert offences == []


def test_the_forbidden_words_are_found() -> None:
    pattern = re.compile("|".join(FORBIDDEN))
    assert pattern.search("see https://py" + "pi.org/project/x")
    assert pattern.search('open("/ro' + 'ot/file")')
    assert not pattern.search("./network/file $HOME/work/x")


def test_readers_are_told_the_right_name_of_the_distribution() -> None:
    wrong = re.compile(r"pip3? install (?:-U |--upgrade )?['\"]?offline-ju" + r"dge\b")
    offences = [
        _name(path) for path in _tracked() if wrong.search(path.read_text("utf-8", "replace"))
    ]
    assert offences == []
