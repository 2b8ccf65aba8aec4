"""Owns the prompt templates: where their files are, what identifies them, and how they render."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import resources
from pathlib import Path
from typing import Any, Literal

from offline_judge.domain.base import text_hash
from offline_judge.domain.message import Message
from offline_judge.errors import TemplateError
from offline_judge.prompting.environment import Source, bind
from offline_judge.prompting.fence import Fence
from offline_judge.protocols import Values

SHARED = "common"
CORRECTION = f"{SHARED}/retry.correction"

_SUFFIX = ".jinja"
_HEADING = "=== {role} ==="
_HEADING_LINE = re.compile(r"^=== (system|user) ===\n", re.MULTILINE)
_ROLES: tuple[Literal["system", "user"], ...] = ("system", "user")


@dataclass(frozen=True)
class Rendered:
    """A prompt and all that is needed to make it again.

    Attributes:
        messages: The conversation, the turns it follows included.
        template: Full name, `namespace/stage` or `namespace/stage.turn`.
        template_hash: SHA-256 of the template's source, as `TemplateLibrary.sources` keys it.
        values_record: The values as JSON: text cleaned; untrusted text as
            `{"untrusted": kind, "text": ..., "tag": ...}`.
    """

    messages: tuple[Message, ...]
    template: str
    template_hash: str
    values_record: dict[str, Any]


class _Template:
    """The files of one prompt: a system and a user file, or the user file of a later turn."""

    def __init__(self, name: str, parts: Mapping[Literal["system", "user"], Source]) -> None:
        self.name = name
        self.is_turn = "system" not in parts
        self._parts = parts
        self.source = _joined({role: part.text for role, part in parts.items()})
        self.hash = text_hash(self.source)

    def fill(
        self, record: Mapping[str, Any], follows: tuple[Message, ...] | None
    ) -> tuple[Message, ...]:
        if self.is_turn != bool(follows):
            fault = "continues a conversation" if self.is_turn else "starts a conversation"
            raise TemplateError(f"The template {fault}", where=self.name)
        turns = (
            Message(role=role, content=part.fill(record)) for role, part in self._parts.items()
        )
        return (*(follows or ()), *turns)


class TemplateLibrary:
    """All templates of some packages, read once, so that a run's prompts cannot change under it.

    Args:
        packages: Namespace to package; the files are in the package's folder `prompts`. The
            namespace `common` with the prompts that belong to no method is always there.
        override: A folder whose `<namespace>/<file>` replaces the shipped file of that name.
        fence: What untrusted values are wrapped with.

    Raises:
        TemplateError: a file is missing, does not parse, or overrides nothing.
    """

    def __init__(self, packages: Mapping[str, str], override: Path | None, fence: Fence) -> None:
        self._fence = fence
        self._templates: dict[str, _Template] = {}
        if override is not None and not override.is_dir():
            raise TemplateError(
                "The folder of overriding templates is missing", where=str(override)
            )
        for namespace, package in {SHARED: "offline_judge.prompting", **packages}.items():
            files = _shipped(namespace, package)
            if override is not None:
                files |= _overriding(override / namespace, files)
            for template in _assembled(namespace, files):
                self._templates[template.name] = template

    def render(
        self, template: str, values: Values, follows: tuple[Message, ...] | None = None
    ) -> Rendered:
        """Fill a template; a `stage.turn` is appended to the conversation it `follows`.

        Values enter once and are never read as templates. Text is cleaned, untrusted text is
        fenced too; a template may name fewer values than it is given, never more.

        Raises:
            TemplateError: no such template, a value is missing, or the wrong use of `follows`.
        """
        found = self._find(template)
        record = bind(values, self._fence)
        return Rendered(found.fill(record, follows), found.name, found.hash, record)

    def sources(self) -> dict[str, str]:
        """Template hash to source; the hash is the SHA-256 of exactly this text."""
        return {template.hash: template.source for template in self._templates.values()}

    def hashes(self) -> dict[str, str]:
        """Full template name to template hash."""
        return {name: self._templates[name].hash for name in sorted(self._templates)}

    def _find(self, name: str) -> _Template:
        found = self._templates.get(name)
        if found is None:
            close = get_close_matches(name, self._templates, n=1)
            remedy = f"Did you mean `{close[0]}`?" if close else ""
            raise TemplateError(f"No prompt template `{name}`", remedy=remedy)
        return found


def rerender(
    source: str, record: Mapping[str, Any], follows: tuple[Message, ...] | None = None
) -> tuple[Message, ...]:
    """Make a recorded prompt again from its template's source and its `values_record`.

    Needs neither the template files nor the secret they were fenced with.

    Raises:
        TemplateError: source and record do not fit.
    """
    parts = {role: Source(f"recorded.{role}", text) for role, text in _split(source).items()}
    return _Template("recorded", parts).fill(record, follows)


def _shipped(namespace: str, package: str) -> dict[str, Source]:
    try:
        folder = resources.files(package) / "prompts"
        found = [file for file in folder.iterdir() if file.name.endswith(_SUFFIX)]
    except (ModuleNotFoundError, FileNotFoundError, NotADirectoryError) as error:
        raise TemplateError("A package has no prompts", where=f"{package}/prompts") from error
    return {
        file.name: Source(f"{namespace}/{file.name}", file.read_text("utf-8")) for file in found
    }


def _overriding(folder: Path, shipped: Mapping[str, Source]) -> dict[str, Source]:
    files: dict[str, Source] = {}
    for path in sorted(folder.glob(f"*{_SUFFIX}")):
        if path.name not in shipped:
            close = get_close_matches(path.name, shipped, n=1)
            remedy = f"Did you mean `{close[0]}`?" if close else f"Known: {', '.join(shipped)}."
            raise TemplateError(
                "A template overrides no shipped one", where=str(path), remedy=remedy
            )
        try:
            files[path.name] = Source(str(path), path.read_text("utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise TemplateError(f"Cannot read a template: {error}", where=str(path)) from error
    return files


def _assembled(namespace: str, files: Mapping[str, Source]) -> list[_Template]:
    templates = []
    for file in sorted(files):
        stage, dot, turn = file.removesuffix(_SUFFIX).partition(".")
        if not dot or "." in turn:
            raise TemplateError(
                "A template's file name must be `stage.system`, `stage.user` or `stage.turn`",
                where=f"{namespace}/{file}",
            )
        if turn not in _ROLES:
            parts: dict[Literal["system", "user"], Source] = {"user": files[file]}
            templates.append(_Template(f"{namespace}/{stage}.{turn}", parts))
            continue
        for role in _ROLES:
            if f"{stage}.{role}{_SUFFIX}" not in files:
                missing = f"{namespace}/{stage}.{role}{_SUFFIX}"
                raise TemplateError("A template's file is missing", where=missing)
        if turn == "user":
            parts = {role: files[f"{stage}.{role}{_SUFFIX}"] for role in _ROLES}
            templates.append(_Template(f"{namespace}/{stage}", parts))
    return templates


def _joined(texts: Mapping[Literal["system", "user"], str]) -> str:
    headings = [_HEADING.format(role=role) for role in _ROLES]
    for text in texts.values():
        if any(line in headings for line in text.splitlines()):
            raise TemplateError(f"A template cannot hold the line `{headings[0]}`")
    return "\n".join(f"{_HEADING.format(role=role)}\n{text}" for role, text in texts.items())


def _split(source: str) -> dict[Literal["system", "user"], str]:
    parts = _HEADING_LINE.split(source)
    if parts[0] or len(parts) not in (3, 5):
        raise TemplateError("Not the source of a prompt template")
    texts = dict(zip(parts[1::2], parts[2::2], strict=True))
    found: dict[Literal["system", "user"], str] = {}
    for role in _ROLES:
        if role in texts:
            last = role == "user"
            found[role] = texts[role] if last else texts[role].removesuffix("\n")
    return found
