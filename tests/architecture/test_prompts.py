"""Every shipped prompt is named as the library expects and compiles under strict rules."""

import re
from pathlib import Path

import pytest
from jinja2 import StrictUndefined, meta
from jinja2.sandbox import ImmutableSandboxedEnvironment

PACKAGE = Path(__file__).resolve().parents[2] / "offline_judge"
METHODS = PACKAGE / "methods"
NAME = re.compile(r"(?P<stage>[a-z0-9_]+)\.(?P<turn>[a-z0-9_]+)\.jinja")
TEMPLATES = sorted(METHODS.glob("*/prompts/*"))
ALL = sorted(path for path in PACKAGE.glob("**/prompts/*") if path.is_file())


def _id(path: Path) -> str:
    return f"{path.parent.parent.name}/{path.name}"


def test_every_method_ships_prompts() -> None:
    families = {path.parent.name for path in METHODS.glob("*/method.py")} - {"lexical"}
    assert families
    assert set(TEMPLATES) < set(ALL), "the shared prompts are among them"
    assert {path.parent.parent.name for path in TEMPLATES} == families


@pytest.mark.parametrize("path", ALL, ids=_id)
def test_a_template_is_well_named_and_compiles(path: Path) -> None:
    name = NAME.fullmatch(path.name)
    assert name, f"{path.name} is neither <stage>.system, <stage>.user nor <stage>.<turn>"
    source = path.read_text("utf-8")
    environment = ImmutableSandboxedEnvironment(undefined=StrictUndefined)
    environment.from_string(source)
    # A template is a whole prompt: what it reads comes as values and its hash covers all of it.
    assert list(meta.find_referenced_templates(environment.parse(source))) == []


@pytest.mark.parametrize("path", TEMPLATES, ids=_id)
def test_a_stage_has_its_system_and_its_user_file(path: Path) -> None:
    stage = path.name.partition(".")[0]
    names = {other.name for other in path.parent.iterdir()}
    assert {f"{stage}.system.jinja", f"{stage}.user.jinja"} <= names


HEADS = [path for path in TEMPLATES if path.name.endswith(".system.jinja")]


@pytest.mark.parametrize("path", HEADS, ids=_id)
def test_a_head_takes_no_values(path: Path) -> None:
    environment = ImmutableSandboxedEnvironment()
    values = meta.find_undeclared_variables(environment.parse(path.read_text("utf-8")))
    assert values == set(), "a head is fixed text, or it is no shared prefix"
