"""HTML to Markdown: what a reader of the page sees of its main text, and nothing hidden.

Runs in the child process of `extraction.py`, because some pages take forever or fill the memory.
"""

from __future__ import annotations

import codecs
import re
from typing import Any

# Bytes of a page in which it must declare its encoding, as the HTML standard has it.
_PRESCAN = 1024
_DECLARED = re.compile(
    rb"<(?:meta|\?xml)[^>]*?(?:charset|encoding)\s*=\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE
)
BYTE_ORDER_MARKS = (
    (b"\xef\xbb\xbf", "utf-8-sig"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)
# What browsers read under a narrower name, and what they take where nothing is declared.
_READ_AS = {
    "iso8859-1": "cp1252",
    "ascii": "cp1252",
    "utf-16": "utf-8",
    "utf-16-le": "utf-8",
    "utf-16-be": "utf-8",
}
_UNDECLARED = "cp1252"

_UNSEEN_TAGS = ("script", "style", "template", "noscript", "iframe", "object", "svg", "datalist")
_ZERO = r"(?:0+(?:\.0+)?|\.0+)(?:px|em|rem|pt|%)?\s*(?:!|;|$)"
_NOT_SHOWN = (
    r"display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse)|content-visibility\s*:\s*hidden"
)
_HIDING_RULE = re.compile(_NOT_SHOWN, re.IGNORECASE)
# In a style sheet these are mostly the beginning of an animation; on one element they hide it.
_HIDING_STYLE = re.compile(
    rf"{_NOT_SHOWN}|(?:opacity|font-size)\s*:\s*{_ZERO}|clip\s*:\s*rect\(\s*0"
    r"|(?:left|top|text-indent)\s*:\s*-\d{3,}",
    re.IGNORECASE,
)
# Pages that hide all of themselves show it by a script later.
_WHOLE = ("html", "body")
_RULE = re.compile(r"([^{}]+)\{([^{}]*)\}")
_CSS_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_SIMPLE = re.compile(r"[a-zA-Z][\w-]*|(?:[a-zA-Z][\w-]*)?[.#][\w-]+")
_MEDIA = re.compile(r"@media[^{]*\{(?:[^{}]*\{[^{}]*\})*[^{}]*\}")
_DATE = re.compile(r"\d{4}(?:-\d{2}(?:-\d{2})?)?")
_DATE_NAMES = ("article:published_time", "date", "dcterms.date", "dc.date", "citation_date")
# Less than this share of what can be seen means that the main text was not recognised.
_MISSED_SHARE = 0.1


def decode_page(raw: bytes) -> str:
    """The text of a page by its byte order mark, its declaration, or as browsers do without."""
    for mark, encoding in BYTE_ORDER_MARKS:
        if raw.startswith(mark):
            return raw.decode(encoding, "replace")
    declared = _DECLARED.search(raw[:_PRESCAN])
    if declared:
        try:
            name = codecs.lookup(declared.group(1).decode("ascii", "replace")).name
            return raw.decode(_READ_AS.get(name, name), "replace")
        except (LookupError, ValueError):
            pass
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode(_UNDECLARED, "replace")


def read_html(raw: bytes) -> dict[str, str]:
    """`title`, `text` as Markdown, `url`, `date` and the `way` in which the text was found.

    The text is empty where the page shows none.
    """
    import lxml.etree
    import lxml.html

    page = decode_page(raw).replace("\x00", "")
    parser = lxml.html.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True)
    try:
        root = lxml.html.document_fromstring(page.encode("utf-8", "replace"), parser=parser)
    except lxml.etree.ParserError:
        return {"title": "", "text": "", "way": "empty"}
    found = _metadata(root)
    strip_hidden(root)
    return {**found, **_text(root)}


def strip_hidden(root: Any) -> None:
    """Take out of a parsed page what browsers do not show: text hidden there is no evidence."""
    rules = _hiding_rules(root)
    hidden = [element for element in root.iter() if _is_hidden(element, rules)]
    for element in hidden:
        if element.getparent() is not None:
            element.drop_tree()


def _is_hidden(element: Any, rules: frozenset[str]) -> bool:
    if not isinstance(element.tag, str) or element.tag in _UNSEEN_TAGS:
        return True
    if element.tag in _WHOLE:
        return False
    if element.get("hidden") is not None or _HIDING_STYLE.search(element.get("style") or ""):
        return True
    marks = [f".{name}" for name in (element.get("class") or "").split()]
    marks.append(f"#{element.get('id')}")
    tag = element.tag
    return tag in rules or any(mark in rules or tag + mark in rules for mark in marks)


def _hiding_rules(root: Any) -> frozenset[str]:
    """Selectors that the page's own style sheets hide: plain names of tags, classes and ids.

    Rules that hold for some media only (print, narrow screens) do not count.
    """
    found: set[str] = set()
    for sheet in root.iter("style"):
        css = _MEDIA.sub(" ", _CSS_COMMENT.sub(" ", sheet.text or ""))
        for selectors, body in _RULE.findall(css):
            if _HIDING_RULE.search(body):
                found.update(selector.strip() for selector in selectors.split(","))
    return frozenset(selector for selector in found if _SIMPLE.fullmatch(selector))


def _metadata(root: Any) -> dict[str, str]:
    title = " ".join((root.findtext(".//title") or "").split())
    if not title:
        heading = next(root.iter("h1"), None)
        title = " ".join(heading.text_content().split()) if heading is not None else ""
    url = next((str(x) for x in root.xpath("//link[@rel='canonical']/@href")), "")
    date = ""
    for meta in root.iter("meta"):
        name = (meta.get("property") or meta.get("name") or "").lower()
        match = _DATE.match(meta.get("content") or "") if name in _DATE_NAMES else None
        date = date or (match.group() if match else "")
    return {"title": title, "url": url if url.startswith("http") else "", "date": date}


def _text(root: Any) -> dict[str, str]:
    """The main text by the first way that does not miss nearly all of what can be seen."""
    import trafilatura

    body = root.find("body")
    seen = body if body is not None else root
    plain = "\n\n".join(line for line in (x.strip() for x in seen.itertext()) if line)
    for way in ("precise", "recall"):
        text = trafilatura.extract(
            root,
            output_format="markdown",
            include_comments=False,
            favor_recall=way == "recall",
        )
        if text and len(text) >= _MISSED_SHARE * len(plain):
            return {"text": text, "way": way}
    return {"text": plain, "way": "plain"}
