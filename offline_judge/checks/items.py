"""48 judgments whose answers are known: invented facts, so that nothing but the passage tells."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from importlib.resources import files
from typing import Literal

Kind = Literal["short", "long"]


@dataclass(frozen=True)
class Item:
    """One judgment.

    Attributes:
        id: Number of the fact, `r` or `w` for right or wrong, `s` or `l` for short or long.
        passage: The evidence.
        question: What was asked.
        response: What is judged.
        correct: Whether it is correct, by the passage.
        kind: Whether the response is a bare answer or the same one in a long sentence.
    """

    id: str
    passage: str
    question: str
    response: str
    correct: bool
    kind: Kind

    @property
    def pair(self) -> str:
        """What a short and a long version of the same answer share."""
        return self.id[:-1]


_LONG = 8
_PADDING = (
    "Having looked closely at what is known of this matter, and weighing it with due care, I am "
    "confident that the answer which was asked for here is the following one: {}. This is well "
    "established, and there is hardly any reason for doubt about it."
)


def _items() -> tuple[Item, ...]:
    """All items, those of a passage behind one another, so that it is read once."""
    facts = tomllib.loads(files(__package__).joinpath("facts.toml").read_text("utf-8"))["fact"]
    made = []
    for number, fact in enumerate(facts):
        shown = (fact["passage"], fact["question"])
        for key, correct in (("right", True), ("wrong", False)):
            id_ = f"{number:02d}{key[0]}"
            made.append(Item(f"{id_}s", *shown, fact[key], correct, "short"))
            if number < _LONG:
                padded = _PADDING.format(fact[key])
                made.append(Item(f"{id_}l", *shown, padded, correct, "long"))
    return tuple(made)


ITEMS = _items()
"""All 48: 16 facts, right and wrong, the first eight of them in a long version, too."""

ORDERED = tuple(item for item in ITEMS if item.kind == "short")[:16]
"""Those that are also asked with the labels the other way round."""

REPEATED = tuple(item for item in ITEMS if item.kind == "short")[-12:]
"""Those that are asked three times with chance in it."""
