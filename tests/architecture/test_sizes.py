"""Files and functions stay small, and the checker that says so really finds large ones."""

from pathlib import Path

import size_rules

ROOT = Path(__file__).resolve().parents[2]


def _check(tmp_path: Path, text: str, name: str = "offline_judge/room.py") -> list[str]:
    path = tmp_path / name
    path.parent.mkdir(parents=True)
    path.write_text(text)
    return list(size_rules.violations(path, tmp_path))


def test_no_file_breaks_a_size_rule() -> None:
    files = size_rules.source_files(ROOT)
    assert ROOT / "offline_judge/errors.py" in files
    assert [line for path in files for line in size_rules.violations(path, ROOT)] == []


def test_a_long_file_is_found(tmp_path: Path) -> None:
    found = _check(tmp_path, '"""Owns nothing."""\n' + "x = 1\n" * size_rules.FILE_LINES)
    assert found == ["offline_judge/room.py:1 has 401 lines, more than 400"]


def test_a_long_function_is_found(tmp_path: Path) -> None:
    body = "    x = 1\n" * size_rules.FUNCTION_LINES
    found = _check(tmp_path, f'"""Owns nothing."""\n\nasync def work():\n{body}')
    assert found == ["offline_judge/room.py:3 work has 61 lines, more than 60"]


def test_self_is_no_parameter_and_a_seventh_one_is_found(tmp_path: Path) -> None:
    six, seven = "a, b, c, *, d, e, f", "a, b, c, *, d, e, f, g"
    source = (
        f'"""Owns."""\nclass A:\n    def s({"self, " + six}): ...\n    def v(self, {seven}): ...\n'
    )
    found = _check(tmp_path, source)
    assert found == ["offline_judge/room.py:4 v takes 7 parameters, more than 6"]


def test_a_module_without_docstring_is_found(tmp_path: Path) -> None:
    assert _check(tmp_path, "x = 1\n") == ["offline_judge/room.py:1 has no module docstring"]
