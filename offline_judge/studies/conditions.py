"""What a study compares: conditions, each a method with options."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any

from offline_judge.errors import UsageError

SAGE = "sage"
_FORM = "NAME=METHOD:key=value,... with letters, digits, dashes and underscores in NAME"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")


@dataclass(frozen=True)
class Condition:
    """One way to judge.

    Attributes:
        name: Short and unique in a study; used in tables and files.
        method: Name in the method registry.
        options: The method's own options.
        says: What it is, for readers.
        shown_key: The judge is shown the reference answers, so rows without any cannot be judged.
    """

    name: str
    method: str
    options: Mapping[str, Any] = field(default_factory=dict)
    says: str = ""
    shown_key: bool = False


# Written after the verdict, so it cannot change what a study compares.
_NO_RATIONALE = {"rationale": False}

# N = 3 stands before the smaller ones: what it paid for is found again by them, and what it paid
# is then what it costs alone.
SAGE_CONDITIONS = (
    Condition("direct", "direct", _NO_RATIONALE, "no evidence"),
    Condition("reference", "reference", _NO_RATIONALE, "shown the reference answers", True),
    Condition("lexical", "lexical", says="string comparison, no judge", shown_key=True),
    Condition("sage", SAGE, {**_NO_RATIONALE, "rounds": 3}, "three rounds"),
    Condition("sage-n2", SAGE, {**_NO_RATIONALE, "rounds": 2}, "two rounds"),
    Condition("sage-n1", SAGE, {**_NO_RATIONALE, "rounds": 1}, "one round"),
    Condition(
        "sage-norefine",
        SAGE,
        {**_NO_RATIONALE, "rounds": 3, "refine": False},
        "searches the raw question",
    ),
    Condition(
        "sage-single", SAGE, {**_NO_RATIONALE, "single_pass": True}, "one search, one reading"
    ),
)
SHARED_ROUNDS = ("sage", "sage-n2", "sage-n1")
"""Conditions that share their rounds; the first is the dearest and contains the others."""


def choose(names: Sequence[str], known: Sequence[Condition]) -> tuple[Condition, ...]:
    """The conditions of these names, in the order they are known in; all where none is named.

    Raises:
        UsageError: no condition has this name.
    """
    by_name = {condition.name: condition for condition in known}
    for name in names:
        if name not in by_name:
            close = get_close_matches(name, by_name, n=1)
            hint = f"Did you mean `{close[0]}`? " if close else ""
            raise UsageError(
                f"No condition is called `{name}`.", remedy=f"{hint}Known: {', '.join(by_name)}."
            )
    wanted = set(names) or set(by_name)
    return tuple(condition for condition in known if condition.name in wanted)


def with_options(
    conditions: Iterable[Condition], method: str, options: Mapping[str, Any]
) -> tuple[Condition, ...]:
    """The conditions, with these options added to all of one method; their own options win."""
    return tuple(
        replace(condition, options={**options, **condition.options})
        if condition.method == method
        else condition
        for condition in conditions
    )


def gather(
    known: Sequence[Condition],
    names: Sequence[str],
    more: Sequence[str],
    *,
    method: str,
    options: Mapping[str, Any],
) -> tuple[Condition, ...]:
    """The conditions of a study.

    Args:
        known: Those that ship.
        names: Of these, the ones to take; all where none is named.
        more: Others, each as `parse_condition` reads it.
        method: The method that `options` are for.
        options: Added to all conditions of that method; a condition's own options win.

    Raises:
        UsageError: no such condition, a condition that cannot be read, or a name taken twice.
    """
    chosen = [*choose(names, known), *map(parse_condition, more)]
    taken = [condition.name for condition in chosen]
    twice = next((name for name in taken if taken.count(name) > 1), "")
    if twice:
        raise UsageError(f"Two conditions are called `{twice}`.")
    return with_options(chosen, method, options)


def parse_condition(text: str) -> Condition:
    """Read `NAME=METHOD` or `NAME=METHOD:key=value,key=value`.

    Raises:
        UsageError: it is neither.
    """
    name, equals, rest = text.partition("=")
    method, _, pairs = rest.partition(":")
    options: dict[str, Any] = {}
    for pair in filter(None, pairs.split(",")):
        key, sign, raw = pair.partition("=")
        if not sign or not key:
            raise UsageError("Not a condition", where=text, remedy=_FORM)
        options[key] = _scalar(raw)
    if not equals or not method or not _NAME.fullmatch(name):
        raise UsageError("Not a condition", where=text, remedy=_FORM)
    return Condition(name, method, options, "own")


def _scalar(raw: str) -> Any:
    """Numbers, `true` and `false` as what they look like; all else as text."""
    try:
        value = json.loads(raw)
    except ValueError:
        return raw
    return value if isinstance(value, (bool, int, float)) else raw
