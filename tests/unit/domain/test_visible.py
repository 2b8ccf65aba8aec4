from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offline_judge.domain.visible import shorten, visible


@pytest.mark.parametrize(
    ("hostile", "shown"),
    [
        ("\x1b[2J", "␛[2J"),
        ("a\rb", "a␍b"),
        ("a\x08b", "a␈b"),
        ("\x7f", "\\x7f"),
        ("\x9b2J", "\\x9b2J"),
        ("\u202eabc", "\\u202eabc"),
        ("\ud800", "\\ud800"),
        ("\u2028", "\\u2028"),
        ("\U000e0041", "\\U000e0041"),
    ],
)
def test_what_a_terminal_would_obey_becomes_readable(hostile: str, shown: str) -> None:
    assert visible(hostile) == shown


@pytest.mark.parametrize("harmless", ["日本語", "👩\u200d🔬", "हिन\u200cदी", "a\u00a0b", "naïve"])
def test_ordinary_text_of_any_language_is_left_alone(harmless: str) -> None:
    assert visible(harmless) == harmless


def test_lines_stay_only_where_they_are_wanted() -> None:
    assert visible("a\r\nb\tc", lines=True) == "a\nb c"
    assert visible("a\nb") == "a b"


@given(st.text(alphabet=st.characters()))
def test_nothing_that_moves_or_hides_survives(text: str) -> None:
    shown = visible(text, lines=True).replace("\n", "")

    assert not any(
        unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") for character in shown
    )
    shown.encode("utf-8")


def test_a_shortened_text_is_one_line_with_an_ellipsis() -> None:
    assert shorten("one\ntwo  three", 9) == "one two…"
    assert shorten("short", 9) == "short"
