"""Owns what a judge's generated answer must look like and how it is parsed."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, Literal, NoReturn, TypeVar

from pydantic import BaseModel, ValidationError

from offline_judge.domain.base import content_hash
from offline_judge.domain.judgment import UnscoredReason
from offline_judge.domain.message import Constraint
from offline_judge.errors import UnscoredError
from offline_judge.prompting.fence import neutralise
from offline_judge.prompting.schema import schema_of

M = TypeVar("M", bound=BaseModel)

# Part of every key: raise it when a parser accepts or returns something else than before.
PARSER_VERSION = 1

_FENCE = re.compile(r"\A```[\w+-]*[ \t]*\n?(.*?)\n?[ \t]*```\Z", re.DOTALL)
_BULLET = re.compile(r"\A[-*\u2022][ \t]+")
_QUOTES = ('""', "''", "\u201c\u201d", "\u2018\u2019", "\u00ab\u00bb", "\u300c\u300d", "``")
_SENTENCE_END = re.compile(r"[.!?](?=[\"'\u201d\u2019)\]]*(?:\s|\Z))|[\u3002\uff01\uff1f]")

# Openings by which chat models decline. Few on purpose: "I cannot find X in the passages" is an
# answer, so an inability counts only with a verb of helping.
_CANNOT = r"i (?:can ?not|can['\u2019]?t|am unable to|am not able to|won['\u2019]?t|will not)"
_HELP = r"(?:assist|help|provide|answer|comply|fulfil|do (?:that|this)|engage|continue|discuss)"
_REFUSALS = re.compile(
    rf"\A(?:(?:i['\u2019]?m|i am) (?:very |so |truly )?(?:sorry|afraid)|sorry|apologies|"
    rf"my apologies|i apologi[sz]e|unfortunately)?[\s,.:;]*(?:but )?{_CANNOT} {_HELP}\b"
    r"|\Aas an? (?:ai|artificial intelligence|large language model|language model)\b",
    re.IGNORECASE,
)


def _fail(reason: UnscoredReason, detail: str) -> NoReturn:
    raise UnscoredError(reason, detail)


def _refuse(text: str) -> None:
    if _REFUSALS.match(text):
        _fail(UnscoredReason.REFUSED, f"the judge declined: {text[:80]}")


def _unfenced(text: str) -> str:
    match = _FENCE.match(text)
    return match.group(1).strip() if match else text


@dataclass(frozen=True)
class LineAnswer:
    """One line of plain text, such as a query.

    Code fences, bullets, quotes around the whole and leading labels are taken off, and blank
    space is joined. What is still longer than `max_chars` is malformed, since a query cut in the
    middle asks something else, unless `overlong` says to cut it behind its last whole sentence
    that fits (malformed where none does).

    Attributes:
        max_chars: Greatest length of the parsed text, in characters.
        max_tokens: Output limit of the first attempt.
        stop: Texts that end the answer.
        labels: Leading words to take off when a colon follows, `Query` takes off `Query:`.
        overlong: What becomes of a text that is too long.
    """

    max_chars: int
    max_tokens: int
    stop: tuple[str, ...] = ("\n",)
    labels: tuple[str, ...] = ()
    overlong: Literal["refuse", "cut"] = "refuse"

    @property
    def constraint(self) -> Constraint | None:
        """None: free text."""
        return None

    @property
    def key(self) -> str:
        """Changes with every limit, label and the parser itself."""
        limits = [self.max_chars, list(self.labels), self.overlong]
        return content_hash(["line", PARSER_VERSION, limits])

    def salvage(self, text: str) -> str | None:
        """The whole sentences of a text that was cut, where `overlong` allows to cut at all."""
        ends = [match.end() for match in _SENTENCE_END.finditer(text)]
        return text[: ends[-1]] if self.overlong == "cut" and ends else None

    def parse(self, text: str) -> str:
        """The bare text.

        Raises:
            UnscoredError: empty, refused or malformed.
        """
        bare = " ".join(self._strip(neutralise(text)).split())
        if not any(char.isalnum() for char in bare):
            _fail(UnscoredReason.EMPTY, "the answer has no words")
        _refuse(bare)
        if len(bare) <= self.max_chars:
            return bare
        ends = [match.end() for match in _SENTENCE_END.finditer(bare, 0, self.max_chars)]
        if self.overlong == "cut" and ends:
            return bare[: ends[-1]]
        _fail(
            UnscoredReason.MALFORMED,
            f"it has {len(bare)} characters, at most {self.max_chars} are allowed",
        )

    def _strip(self, text: str) -> str:
        words = "|".join(re.escape(label) for label in self.labels)
        label = re.compile(rf"\A[*_#\s]*(?:{words})[*_]*\s*[:\uff1a][*_]*\s*", re.IGNORECASE)
        while True:
            before = text
            text = _BULLET.sub("", _unfenced(text.strip()))
            if words:
                text = label.sub("", text)
            text = _unquoted(text.strip())
            if text == before:
                return text


@dataclass(frozen=True)
class TextAnswer(LineAnswer):
    """A short paragraph, such as a summary: ends at a blank line, cut behind a sentence."""

    stop: tuple[str, ...] = ("\n\n",)
    overlong: Literal["refuse", "cut"] = "cut"


def _unquoted(text: str) -> str:
    if text.startswith("**") and text.endswith("**") and "**" not in text[2:-2] and text[2:-2]:
        return text[2:-2]
    inner = text[1:-1]
    for pair in _QUOTES:
        # Quotes inside belong to the text: `"A" and "B"` is not one quotation.
        if text[:1] + text[-1:] == pair and len(text) > 1 and not set(pair) & set(inner):
            return inner
    return text


@dataclass(frozen=True)
class JsonAnswer(Generic[M]):
    """One JSON object, constrained where the engine can and always checked here.

    Attributes:
        model: The shape of the object; must fit the subset of `prompting.schema`.
        max_tokens: Output limit of the first attempt.
        stop: Texts that end the answer.

    Raises:
        SchemaError: the model does not fit the subset.
    """

    model: type[M]
    max_tokens: int
    stop: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        schema_of(self.model)

    @cached_property
    def _schema(self) -> dict[str, Any]:
        return schema_of(self.model)

    @property
    def constraint(self) -> Constraint | None:
        """The model's schema."""
        return Constraint(json_schema=self._schema)

    @property
    def key(self) -> str:
        """Changes with the schema, the order of its fields, and the parser."""
        ordered = json.dumps(self._schema, ensure_ascii=False)
        return content_hash(["json", PARSER_VERSION, self.model.__qualname__, ordered])

    def salvage(self, text: str) -> str | None:  # noqa: ARG002 - as the protocol has it
        """None: half an object is no object."""
        return None

    def parse(self, text: str) -> M:
        """The whole text as one object; one code fence around it is taken off.

        Raises:
            UnscoredError: empty, refused, malformed, or off-menu (a value not in its enum).
        """
        body = _unfenced(text.strip())
        if not body:
            _fail(UnscoredReason.EMPTY, "the answer is empty")
        try:
            raw = json.loads(body, object_pairs_hook=_object, parse_constant=_no_constant)
        except (ValueError, RecursionError) as error:
            _refuse(body)
            _fail(UnscoredReason.MALFORMED, f"it is not one JSON object ({error})")
        if not isinstance(raw, dict):
            _fail(UnscoredReason.MALFORMED, "it is JSON but not an object")
        unknown = sorted(raw.keys() - self._schema["properties"].keys())
        if unknown:
            _fail(UnscoredReason.MALFORMED, f"it has the unknown field `{unknown[0][:40]}`")
        for name, value in raw.items():
            bound = self._schema["properties"][name].get("items", {}).get("maxLength")
            if bound and isinstance(value, list) and any(len(str(one)) > bound for one in value):
                _fail(UnscoredReason.MALFORMED, f"`{name}`: an item is longer than {bound}")
        return self._checked(raw)

    def _checked(self, raw: dict[str, Any]) -> M:
        try:
            return self.model.model_validate_json(json.dumps(raw), strict=True)
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False)[0]
            place = ".".join(str(part) for part in first["loc"]) or "the object"
            menu = first["type"] in ("literal_error", "enum")
            reason = UnscoredReason.OFF_MENU if menu else UnscoredReason.MALFORMED
            _fail(reason, f"`{place}`: {first['msg']}")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a field is given twice")
    return found


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
