"""What the scripted backend says: rules, faults, and default answers derived from the prompt."""

from __future__ import annotations

import json
import random
import re
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError, field_validator

from offline_judge.domain.base import Frozen, text_hash
from offline_judge.domain.message import Label, Message
from offline_judge.errors import UsageError

_WORDS = (
    *("the", "a", "river", "city", "year", "law", "house", "record", "treaty", "island"),
    *("council", "report", "museum", "bridge", "season", "first", "second", "north", "old"),
    *("large", "modern", "named", "built", "held", "moved", "found", "written", "before", "after"),
)
_PIECE = re.compile(r" ?[^\W_]{1,6}|\s|[^\w\s]|_")
_SHORTEST, _LONGEST = 6, 14


def _compilable(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"no regular expression: {error}") from error
    return pattern


class _Matched(Frozen):
    """Applies where `match` (a regular expression) is found in the last user message."""

    match: str = ""

    _check = field_validator("match")(_compilable)

    def applies(self, messages: Sequence[Message]) -> bool:
        """Whether the last user message has the pattern."""
        users = [turn.content for turn in messages if turn.role == "user"]
        return re.search(self.match, users[-1] if users else "", re.DOTALL) is not None


class Rule(_Matched):
    """Answers to give in turn within one conversation; the last one stays."""

    answers: tuple[str, ...] = Field(min_length=1)


class LabelRule(_Matched):
    """Masses by label name; labels that are not named get none, the rest lies outside."""

    masses: dict[str, float]


class Fault(_Matched):
    """Something that goes wrong.

    Attributes:
        kind: `crash` ends the call with an error and empties all caches, `hang` never answers,
            `truncated` cuts the answer in half by its length, `unconstrained` ignores a schema.
        call: The call it happens at, counted from 0; None for any.
        times: How often it happens at most; 0 for always.
    """

    kind: Literal["crash", "hang", "truncated", "unconstrained"]
    call: int | None = None
    times: int = 1


class ScriptOptions(Frozen):
    """How the scripted backend behaves; also a JSON file, see `from_file`.

    Attributes:
        window: Tokens one slot holds.
        slots: Requests worked on at once.
        latency_s: Seconds a generated token takes.
        read_latency_s: Seconds a prompt token that is not cached takes.
        rules: The first that applies gives the answer.
        label_rules: The first that applies gives the masses.
        faults: Every one that applies is used up in order.
        thinks: It thinks before it answers, unless it is told not to.
        token_level: It tells token ids and goes on with an answer that is begun.
        label_probabilities: It names alternatives.
        constrains: It obeys a schema.
    """

    window: int = 4096
    slots: int = 4
    latency_s: float = 0.0
    read_latency_s: float = 0.0
    rules: tuple[Rule, ...] = ()
    label_rules: tuple[LabelRule, ...] = ()
    faults: tuple[Fault, ...] = ()
    thinks: bool = False
    token_level: bool = True
    label_probabilities: bool = True
    constrains: bool = True

    @staticmethod
    def from_file(path: Path) -> ScriptOptions:
        """Read a script.

        Raises:
            UsageError: the file cannot be read or is no script.
        """
        try:
            return ScriptOptions.model_validate_json(path.read_bytes())
        except (OSError, ValidationError) as error:
            raise UsageError(f"No usable script: {error}", where=str(path)) from error


def pieces(text: str) -> list[str]:
    """Cut text into tokens: words with their leading space in runs of six, and all else singly."""
    return _PIECE.findall(text)


def token_ids(text: str) -> tuple[int, ...]:
    """Stable ids, the same in every process."""
    return tuple(zlib.crc32(piece.encode("utf-8", "surrogatepass")) for piece in pieces(text))


def default_text(key: str) -> str:
    """A line of plausible words, always the same for the same key."""
    draw = random.Random(text_hash(key))
    words = draw.choices(_WORDS, k=draw.randint(_SHORTEST, _LONGEST))
    return " ".join(words).capitalize() + "."


def default_json(schema: Mapping[str, Any], key: str) -> str:
    """A valid instance of a schema of `prompting.schema`'s subset, compact."""
    draw = random.Random(text_hash(key))
    return json.dumps(_instance(schema, draw), ensure_ascii=False, separators=(",", ":"))


def default_masses(labels: Sequence[Label], key: str) -> dict[str, float]:
    """Masses that sum to .95, always the same for the same key."""
    weights = {
        label.name: random.Random(text_hash(f"{label.name}/{key}")).random() + 0.01
        for label in labels
    }
    return {name: 0.95 * weight / sum(weights.values()) for name, weight in weights.items()}


def _instance(schema: Mapping[str, Any], draw: random.Random) -> Any:
    if "enum" in schema:
        return draw.choice(list(schema["enum"]))
    kind = schema.get("type")
    if kind == "object":
        return {name: _instance(part, draw) for name, part in schema["properties"].items()}
    if kind == "array":
        count = draw.randint(0, min(3, int(schema.get("maxItems", 3))))
        return [_instance(schema["items"], draw) for _ in range(count)]
    if kind == "boolean":
        return draw.random() < 0.5
    if kind == "string":
        text = " ".join(draw.choices(_WORDS, k=draw.randint(_SHORTEST, _LONGEST)))
        return text[: int(schema.get("maxLength", len(text)))].strip()
    raise UsageError(f"The script knows no default answer for a schema with type {kind!r}")
