"""Owns the sandbox templates run in and the form values take inside it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jinja2 import StrictUndefined, TemplateSyntaxError, UndefinedError, meta, nodes
from jinja2.exceptions import SecurityError, TemplateRuntimeError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from offline_judge.errors import TemplateError
from offline_judge.prompting.fence import Fence, fenced, has_control_token, neutralise
from offline_judge.protocols import Untrusted, Value, Values


class Printable:
    """An untrusted text inside a template: it can be printed whole or asked whether it is empty.

    Filters and joining would have to turn it into plain text, where a cut could lose the fence's
    end, so everything but printing is refused.
    """

    __slots__ = ("_filled", "_form")

    def __init__(self, form: str, filled: bool) -> None:
        self._form = form
        self._filled = filled

    def __bool__(self) -> bool:
        return self._filled

    def __str__(self) -> str:
        raise TemplateRuntimeError("untrusted text can only be printed, by itself")

    def __repr__(self) -> str:
        return "<untrusted text>"


def bind(values: Values, fence: Fence) -> dict[str, Any]:
    """The record of values: cleaned, untrusted ones with kind and tag, ready for JSON."""
    return {name: _record(value, fence) for name, value in values.items()}


def _record(value: Value | Untrusted, fence: Fence) -> Any:
    if isinstance(value, Untrusted):
        clean = neutralise(value.text)
        return {"untrusted": value.kind, "text": clean, "tag": fence.tag(clean)}
    if isinstance(value, tuple):
        return [_record(item, fence) for item in value]
    if isinstance(value, str):
        return neutralise(value)
    if isinstance(value, int):
        return value
    raise TemplateError(f"A prompt takes text, numbers and untrusted text, not {type(value)}")


def _inside(record: Any) -> Any:
    if isinstance(record, Mapping):
        return Printable(fenced(record["text"], record["tag"]), bool(record["text"].strip()))
    if isinstance(record, list | tuple):
        return tuple(_inside(item) for item in record)
    return record


def _printed(value: Any) -> Any:
    if isinstance(value, Printable):
        return value._form
    if isinstance(value, str | int | StrictUndefined):
        return value
    raise TemplateRuntimeError(f"cannot print {type(value).__name__}; loop over its items")


def _environment() -> ImmutableSandboxedEnvironment:
    environment = ImmutableSandboxedEnvironment(
        undefined=StrictUndefined,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=False,
        finalize=_printed,
    )
    # A prompt must come out the same every time.
    environment.globals.pop("lipsum")
    environment.filters.pop("random")
    return environment


_ENVIRONMENT = _environment()
# What a faulty template can raise while it is filled; a template is a user's to write.
_FAULTS = (
    UndefinedError,
    SecurityError,
    TemplateRuntimeError,
    TypeError,
    ValueError,
    ArithmeticError,
    LookupError,
    AttributeError,
)


class Source:
    """One template file: checked when it is read, filled as often as needed.

    Args:
        name: Its place, for errors.
        text: Its source.

    Raises:
        TemplateError: it does not parse, reaches for other files, or holds a control token.
    """

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.text = text
        if has_control_token(text):
            raise TemplateError(
                "A template holds a chat-template control token",
                where=name,
                remedy="Remove it: the model's own chat template adds the turns.",
            )
        try:
            tree = _ENVIRONMENT.parse(text, filename=name)
            self._template = _ENVIRONMENT.from_string(text)
        except TemplateSyntaxError as error:
            raise TemplateError(
                f"A template does not parse: {error.message}", where=f"{name}:{error.lineno}"
            ) from error
        # A prompt's identity is the hash of its own files.
        if any(tree.find_all((nodes.Include, nodes.Import, nodes.FromImport, nodes.Extends))):
            raise TemplateError("A template cannot take in other files", where=name)
        self._variables = frozenset(meta.find_undeclared_variables(tree))

    def fill(self, record: Mapping[str, Any]) -> str:
        """The text of one turn, without blank space at its ends.

        Raises:
            TemplateError: a value is missing, the template fails or comes out blank.
        """
        missing = sorted(self._variables - record.keys() - _ENVIRONMENT.globals.keys())
        if missing:
            raise TemplateError(f"A template needs a value for `{missing[0]}`", where=self.name)
        try:
            text = self._template.render({name: _inside(item) for name, item in record.items()})
        except _FAULTS as error:
            raise TemplateError(f"A template cannot be filled: {error}", where=self.name) from error
        # Two values printed side by side may have formed a control token that neither holds.
        text = neutralise(text).strip()
        if not text:
            raise TemplateError("A template came out empty", where=self.name)
        return text
