"""The documents: links lead somewhere, and what they promise exists."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted({*ROOT.glob("*.md"), *ROOT.glob("models/**/*.md"), *ROOT.glob("docs/**/*.md")})
LINK = re.compile(r"\]\((?!https?:)([^)#]+)[^)]*\)")
PATH = re.compile(r"`((?:scripts|tests|models|offline_judge)/[\w/.-]+\.\w+|scripts/\w+)`")


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_every_link_and_named_file_exists(path: Path) -> None:
    text = path.read_text("utf-8")
    linked = [path.parent / name for name in LINK.findall(text)]
    named = [ROOT / name for name in PATH.findall(text)]
    assert [str(target) for target in (*linked, *named) if not target.exists()] == []


def test_the_architecture_names_every_room() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    package = ROOT / "offline_judge"
    rooms = {f"{path.parent.name}/" for path in package.glob("*/__init__.py")}
    rooms |= {path.name for path in package.glob("*.py") if not path.name.startswith("__")}
    assert {room for room in rooms if f"`{room}`" not in text} == set()


def test_the_readme_names_every_command() -> None:
    from offline_judge.cli.main import root

    text = (ROOT / "README.md").read_text("utf-8")
    names = set(getattr(root, "lazy", {}))
    assert "run" in names
    assert {name for name in names if f"offline-judge {name}" not in text} == set()


def test_the_readme_and_the_help_agree_on_exit_codes() -> None:
    from offline_judge.cli.diagnostics import EXIT_CODES

    rows = re.findall(r"^\| (\d+) \|", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE)
    assert [int(code) for code in rows] == [int(code) for code, _ in EXIT_CODES]


def test_the_readme_says_of_which_scripts_the_output_is_kept() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    kept = {path.stem for path in (ROOT / "docs" / "figures").glob("*.txt")}
    said = text.partition("[docs/figures](docs/figures) has the output of ")[2].split(". ")[0]
    assert set(re.findall(r"bench_(\w+)\.py", said)) == kept


def test_the_changelog_has_the_version_that_is_built() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert "## [Unreleased]" in changelog
    assert f"## [{version}]" in changelog
    assert f'VERSION = "{version}"' in (ROOT / "offline_judge/settings.py").read_text("utf-8")
