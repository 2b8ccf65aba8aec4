"""Markdown: its title, its sections, and what a reader of it does not see."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from offline_judge.retrieval.corpus.passages import count_words

# A section of fewer words shares passages with the next one: alone it would be no evidence.
_SMALL_SECTION = 25

_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL | re.M)
_FRONT_FIELD = re.compile(r"^(title|date|url):[ \t]*(.+?)[ \t]*$", re.M)
# Where a block of code begins, which is kept as it is up to its end, or a comment.
_CODE_OR_COMMENT = re.compile(
    r"^ {0,3}(`{3,}|~{3,})[^\n]*\n(?:.*?^ {0,3}\1[`~]*[ \t]*$|.*)|<!--", re.DOTALL | re.M
)
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(.+?)[ \t]*#*[ \t]*$")
_UNDERLINE = re.compile(r" {0,3}(=+|-{2,})[ \t]*$")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_BLOCK = re.compile(r"[ \t]*(?:[-*+>|#]|\d+[.)])")


@dataclass(frozen=True)
class Marked:
    """What a Markdown text holds; `sections` as in `Document`."""

    title: str
    text: str
    sections: tuple[tuple[int, str], ...]
    url: str = ""
    date: str = ""


@dataclass(frozen=True)
class _Heading:
    start: int
    level: int
    words: str


def read_markdown(source: str, *, title: str = "", fallback: str = "") -> Marked:
    """Part a Markdown text into titled sections; the text itself stays as it was written.

    The title is `title`, else that of the front matter, else the first heading of level 1, else
    `fallback`. A section is titled by the document's title and the headings above it.
    """
    body, given = _front_matter(source.replace("\r\n", "\n"))
    text = "".join(_seen(body))
    headings = list(_headings(text))
    first = next((heading.words for heading in headings if heading.level == 1), "")
    title = title or given.get("title") or first or fallback
    return Marked(
        title=title,
        text=text,
        sections=tuple(_sections(text, headings, title)),
        url=given.get("url", ""),
        date=given.get("date", ""),
    )


def _front_matter(source: str) -> tuple[str, dict[str, str]]:
    """The text behind the front matter, and the fields of it that a passage has a place for."""
    match = _FRONT_MATTER.match(source)
    if match is None:
        return source, {}
    fields = {name: value.strip("\"'") for name, value in _FRONT_FIELD.findall(match.group(1))}
    return source[match.end() :], fields


def _seen(text: str) -> Iterator[str]:
    """The text without comments, which nobody sees in the rendered page."""
    at = 0
    while match := _CODE_OR_COMMENT.search(text, at):
        if match.group(1):
            yield text[at : match.end()]
            at = match.end()
            continue
        end = text.find("-->", match.end())
        if end < 0:
            break
        yield text[at : match.start()]
        at = end + len("-->")
    yield text[at:]


def _headings(text: str) -> Iterator[_Heading]:
    """All headings outside of blocks of code, with `#` or underlined."""
    offset, before, fence = 0, "", ""
    for line in text.splitlines(keepends=True):
        mark = _FENCE.match(line)
        if fence:
            if mark and mark.group(1).startswith(fence):
                fence = ""
            before = ""
        elif mark:
            fence, before = mark.group(1), ""
        elif found := _HEADING.match(line.rstrip("\n")):
            yield _Heading(offset, len(found.group(1)), _plain(found.group(2)))
            before = ""
        elif before.strip() and not _BLOCK.match(before) and (under := _UNDERLINE.match(line)):
            level = 1 if under.group(1).startswith("=") else 2
            yield _Heading(offset - len(before), level, _plain(before.strip()))
            before = ""
        else:
            before = line
        offset += len(line)


def _sections(text: str, headings: list[_Heading], title: str) -> list[tuple[int, str]]:
    """Start and title of each section; a small one takes in the one that follows it."""
    above: list[_Heading] = []
    sections: list[tuple[int, str]] = []
    level = 0
    for heading in headings:
        above = [*(outer for outer in above if outer.level < heading.level), heading]
        names = [outer.words for outer in above if outer.words and outer.words != title]
        titled = ": ".join(filter(None, [title, *names]))
        start = sections[-1][0] if sections else 0
        if sections and count_words(text[start : heading.start]) < _SMALL_SECTION:
            if heading.level <= level:
                continue
            # A heading with nothing but a section of its own below it: that one has the text.
            sections.pop()
        else:
            start = heading.start
        sections.append((start, titled))
        level = heading.level
    return sections


def _plain(words: str) -> str:
    return _LINK.sub(r"\1", words).replace("`", "").strip("*_ \t")
