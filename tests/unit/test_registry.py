"""The registry: lazy, helpful about wrong names, open to other distributions."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import EntryPoint
from typing import Any

import pytest

from offline_judge.errors import MissingDependencyError, UsageError
from offline_judge.registry import METHOD_GROUP, METHODS, Registry


def _discover(*points: EntryPoint) -> Any:
    def find(*, group: str) -> tuple[EntryPoint, ...]:
        return tuple(point for point in points if point.group == group)

    return find


def _methods(*points: EntryPoint) -> Registry:
    return Registry(
        "method", {"direct": "json:dumps"}, group=METHOD_GROUP, discover=_discover(*points)
    )


def test_listing_imports_no_component_and_nothing_heavy() -> None:
    code = (
        "import sys; from offline_judge.registry import METHODS, BACKENDS, PROVIDERS;"
        "names = [*METHODS.names(), *BACKENDS.names(), *PROVIDERS.names()];"
        "assert {'direct', 'sage', 'llama_cpp', 'scripted', 'corpus'} <= set(names), names;"
        "bad = [m for m in sys.modules if m.startswith('offline_judge.') "
        "and m.split('.')[1] not in ('registry', 'errors')];"
        "assert not bad and 'pydantic' not in sys.modules, bad"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_misspelt_name_is_answered_with_the_nearest_and_the_list() -> None:
    with pytest.raises(UsageError) as caught:
        METHODS.load("sgae")
    assert "Did you mean `sage`?" in str(caught.value)
    assert "direct" in str(caught.value)
    assert caught.value.exit_code == 2


def test_a_name_far_from_all_gets_the_list_only() -> None:
    with pytest.raises(UsageError) as caught:
        METHODS.placeholder("zzzzzz")
    assert "Did you mean" not in str(caught.value)
    assert "sage" in str(caught.value)


def test_load_gives_the_constant_itself() -> None:
    import json

    assert _methods().load("direct") is json.dumps


def test_another_distribution_adds_a_method() -> None:
    registry = _methods(EntryPoint("mine", "json.decoder:JSONDecoder", METHOD_GROUP))
    assert registry.names() == ("direct", "mine")
    assert registry.package("mine") == "json"
    assert registry.load("mine").__name__ == "JSONDecoder"


def test_another_distribution_cannot_take_over_a_shipped_name() -> None:
    registry = _methods(EntryPoint("direct", "os:getcwd", METHOD_GROUP))
    assert registry.placeholder("direct") == "json:dumps"


def test_a_component_whose_package_is_absent_names_what_is_missing() -> None:
    registry = _methods(EntryPoint("mine", "no_such_package.method:METHOD", METHOD_GROUP))
    with pytest.raises(MissingDependencyError) as caught:
        registry.load("mine")
    assert "no_such_package" in str(caught.value)
    assert caught.value.exit_code == 3


def test_a_component_without_its_constant_is_a_usage_error() -> None:
    registry = _methods(EntryPoint("mine", "json:METHOD", METHOD_GROUP))
    with pytest.raises(UsageError) as caught:
        registry.load("mine")
    assert "json:METHOD" in str(caught.value)
