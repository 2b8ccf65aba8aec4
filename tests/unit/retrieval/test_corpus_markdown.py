"""Markdown: titles, sections, and what nobody sees in the rendered page."""

from __future__ import annotations

import pytest

from offline_judge.retrieval.corpus.documents import Document
from offline_judge.retrieval.corpus.markdown import read_markdown
from offline_judge.retrieval.corpus.passages import cut_document

LONG = "Words that fill a section so that it may stand alone, " * 4


def _titles(text: str) -> list[str]:
    return [title for _, title in read_markdown(text, fallback="file").sections]


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("# Ants\n\ntext", "Ants"),
        ("Ants\n====\n\ntext", "Ants"),
        ("# *Ants* and [bees](x.md) ##\n", "Ants* and bees"),
        ("intro\n\n# Ants\n# Bees\n", "Ants"),
        ("## Only a section\n", "file"),
        ("no heading", "file"),
        ("", "file"),
        ("#no heading\n", "file"),
        ("```\n# in code\n```\n", "file"),
        ("~~~\n# in code\n```\n# too\n~~~\n# Ants\n", "Ants"),
        ('---\ntitle: "Bees"\ntags: [a]\n---\n# Ants\n', "Bees"),
        ("---\n# Ants\n", "Ants"),
        ("\r\n# Ants\r\ntext\r\n", "Ants"),
    ],
)
def test_the_title(text: str, title: str) -> None:
    assert read_markdown(text, fallback="file").title == title


def test_a_title_from_outside_comes_first() -> None:
    marked = read_markdown("# Inner\n" + LONG + "\n## Part\n" + LONG, title="Outer")
    assert marked.title == "Outer"
    assert [title for _, title in marked.sections] == ["Outer: Inner", "Outer: Inner: Part"]


def test_front_matter_gives_date_and_url_and_is_no_text() -> None:
    marked = read_markdown("---\ndate: 2024-05-01\nurl: 'https://a.example'\n---\nText.")
    assert (marked.text, marked.date, marked.url) == ("Text.", "2024-05-01", "https://a.example")


def test_sections_are_titled_by_the_headings_above_them() -> None:
    text = (
        f"# Guide\n{LONG}\n## Install\n{LONG}\n### Linux\n{LONG}\n## Use\n{LONG}\nEnd\n---\n{LONG}"
    )
    assert _titles(text) == [
        "Guide",
        "Guide: Install",
        "Guide: Install: Linux",
        "Guide: Use",
        "Guide: End",
    ]


def test_a_small_section_shares_with_the_next() -> None:
    text = f"# Guide\n\n## Install\n{LONG}\n## A\nshort\n## B\n{LONG}\n## C\n{LONG}"
    assert _titles(text) == ["Guide: Install", "Guide: A", "Guide: C"]


def test_passages_carry_their_sections_titles_and_hold_the_whole_text() -> None:
    text = f"Before.\n\n# Guide\n{LONG * 5}\n## Install\n{LONG}"
    marked = read_markdown(text)
    document = Document("d", marked.title, marked.text, sections=marked.sections)
    passages = list(cut_document(document))
    assert passages[0].title == "Guide"
    assert passages[-1].title == "Guide: Install"
    assert passages[-1].text.startswith("## Install")
    assert all("## Install" not in passage.text for passage in passages[:-1])
    assert [passage.id for passage in passages] == [f"d#{n}" for n in range(len(passages))]
    assert all(text[p.start : p.end] == p.text for p in passages)
    assert "".join("".join(p.text.split()) for p in passages) == "".join(text.split())


def test_comments_are_not_seen_but_code_is() -> None:
    text = "a <!-- hidden\n# no --> b\n\n```html\n<!-- shown -->\n```\nc <!-- open"
    assert read_markdown(text).text == "a  b\n\n```html\n<!-- shown -->\n```\nc <!-- open"


def test_a_rule_below_a_list_or_a_table_is_no_heading() -> None:
    assert _titles("- item\n---\n\n| a |\n---\n\n> quote\n---\n") == []


@pytest.mark.parametrize(
    "text",
    ["#" * 100_000, "```\n" * 20_000, "<!--" * 50_000, "a\n-\n" * 20_000, "```\n" + "~" * 90_000],
)
def test_odd_texts_take_no_time(text: str) -> None:
    read_markdown(text)
