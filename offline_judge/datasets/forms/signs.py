"""What tells one form from another: columns that a row of it has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

SIGNS: dict[str, tuple[frozenset[str], ...]] = {
    "ambigqa": (frozenset({"id", "question", "annotations"}),),
    "evouna": (frozenset({"question", "golden_answer"}),),
    "freshqa": (frozenset({"question", "effective_year", "false_premise"}),),
    "hotpotqa": (frozenset({"_id", "question"}),),
    "natural-questions": (frozenset({"question_text", "annotations"}),),
    "openqa-eval": (
        frozenset({"Question", "Model answer", "Acceptable?"}),
        frozenset({"question", "answer", "prediction"}),
    ),
    "triviaqa": (
        frozenset({"Question", "QuestionId"}),
        frozenset({"question", "question_id", "answer"}),
    ),
    "nq-open": (frozenset({"question", "answer"}),),
}
"""Form to the columns of its rows; any one of several sets is enough."""


def fits(name: str, columns: Mapping[str, Any]) -> bool:
    """Whether a row with these columns can be one of the form."""
    return any(sign <= columns.keys() for sign in SIGNS[name])


def guess(columns: Mapping[str, Any]) -> str:
    """The form that a row looks like, "" where it is like none.

    A question with one answer may be anything, so that `nq-open` shows only in a list of them.
    """
    sizes = {
        name: max(len(sign) for sign in signs if sign <= columns.keys())
        for name, signs in SIGNS.items()
        if fits(name, columns) and (name != "nq-open" or isinstance(columns["answer"], list))
    }
    return max(sizes, key=lambda name: sizes[name], default="")


def hint(columns: Mapping[str, Any]) -> str:
    """Advice on `--format` for a row of unexpected columns; empty where none comes to mind."""
    name = guess(columns)
    return f"This looks like --format {name}." if name else ""
