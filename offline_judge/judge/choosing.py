"""Owns a reading of labels from a server that names no alternatives: a constrained answer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from offline_judge.domain.judgment import UnscoredReason
from offline_judge.domain.message import Constraint, Label, Labels, Usage
from offline_judge.errors import UnscoredError

_ROOM = 8


@dataclass(frozen=True)
class ChosenLabel:
    """The answer is one label's text and nothing else; implements `protocols.AnswerSchema`."""

    labels: tuple[Label, ...]

    @property
    def key(self) -> str:
        """Identity for the completion cache."""
        return "label/" + "/".join(label.text for label in self.labels)

    @property
    def constraint(self) -> Constraint:
        """One of the labels' texts, as a JSON string."""
        texts = [label.text for label in self.labels]
        return Constraint(json_schema={"type": "string", "enum": texts})

    @property
    def max_tokens(self) -> int:
        """No label has more tokens than characters."""
        return max(len(label.text) for label in self.labels) + _ROOM

    @property
    def stop(self) -> tuple[str, ...]:
        """Nothing: a label ends by itself."""
        return ()

    def salvage(self, text: str) -> str | None:
        """A label that was cut is none."""
        del text
        return None

    def parse(self, text: str) -> Label:
        """The label whose text this is, whatever its case.

        Raises:
            UnscoredError: empty or off-menu.
        """
        said = _unquoted(text.strip()).rstrip(".").strip()
        if not said:
            raise UnscoredError(UnscoredReason.EMPTY, "the final answer is empty")
        for label in self.labels:
            if said.casefold() == label.text.casefold():
                return label
        texts = ", ".join(label.text for label in self.labels)
        raise UnscoredError(UnscoredReason.OFF_MENU, f"{said[:80]!r} is none of: {texts}")


def chosen(labels: Sequence[Label], best: Label) -> Labels:
    """The reading that an answer stands for: no probabilities, only which one it is."""
    masses = {label.name: float(label == best) for label in labels}
    return Labels(masses=masses, outside=0.0, chosen_only=True, usage=Usage(prompt_tokens=0))


def _unquoted(text: str) -> str:
    try:
        found = json.loads(text)
    except ValueError:
        return text
    return found if isinstance(found, str) else text
