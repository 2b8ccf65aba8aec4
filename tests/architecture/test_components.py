"""Every registered component resolves, and its own file proves what it is to the type checker."""

import ast
from importlib import import_module
from pathlib import Path

import pytest

from offline_judge.registry import BACKENDS, FORMS, METHODS, PROVIDERS, Registry

KINDS: dict[str, Registry] = {
    "METHOD: type[Method]": METHODS,
    "BACKEND: type[Backend]": BACKENDS,
    "PROVIDER: type[SearchProvider]": PROVIDERS,
    "FORM: type[Form]": FORMS,
}
SHIPPED = [
    pytest.param(declaration, registry, name, id=f"{registry.kind} {name}")
    for declaration, registry in KINDS.items()
    for name in registry.names()
    if registry.placeholder(name).startswith("offline_judge.")
]


@pytest.mark.parametrize(("declaration", "registry", "name"), SHIPPED)
def test_a_component_resolves_to_a_class_of_its_name(
    declaration: str, registry: Registry, name: str
) -> None:
    component = registry.load(name)
    assert isinstance(component, type)
    assert getattr(component, "name", None) == name


@pytest.mark.parametrize(("declaration", "registry", "name"), SHIPPED)
def test_a_components_file_ends_with_the_typed_constant(
    declaration: str, registry: Registry, name: str
) -> None:
    module = import_module(registry.placeholder(name).partition(":")[0])
    last = ast.parse(Path(str(module.__file__)).read_text("utf-8")).body[-1]
    assert isinstance(last, ast.AnnAssign)
    assert f"{ast.unparse(last.target)}: {ast.unparse(last.annotation)}" == declaration


@pytest.mark.parametrize(
    ("registry", "folder"),
    [(BACKENDS, "backends"), (PROVIDERS, "retrieval/search")],
    ids=["backends", "providers"],
)
def test_every_file_with_a_constant_is_registered(registry: Registry, folder: str) -> None:
    package = Path(__file__).resolve().parents[2] / "offline_judge" / folder
    constants = ("\nBACKEND: ", "\nPROVIDER: ")
    found = {
        path.stem
        for path in package.glob("*.py")
        if any(constant in path.read_text("utf-8") for constant in constants)
    }
    assert found == set(registry.names())


def test_every_form_of_a_public_set_is_registered() -> None:
    folder = Path(__file__).resolve().parents[2] / "offline_judge/datasets/forms"
    found = {path.stem for path in folder.glob("*.py") if "\nFORM: " in path.read_text("utf-8")}
    assert found == {name.replace("-", "_") for name in FORMS.names()}
