"""Text from outside, made safe to print: what a terminal would obey becomes something to read."""

from __future__ import annotations

import unicodedata

# Joiners that scripts and emoji need, the soft hyphen, and Arabic signs that are drawn.
_HARMLESS = frozenset("\u00ad\u200c\u200d\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u08e2")


def visible(text: str, *, lines: bool = False) -> str:
    """Replace characters that move, colour, hide or reorder text by a readable stand-in.

    Args:
        text: Anything; lone surrogates are allowed.
        lines: Keep line feeds, else they become spaces.

    Returns:
        Text without control characters, escapes, bidirectional overrides or lone surrogates.
    """
    if text.isprintable():
        return text
    if lines:
        text = text.replace("\r\n", "\n")
    return "".join(_one(character, lines=lines) for character in text)


def _one(character: str, *, lines: bool) -> str:
    if character.isprintable() or character in _HARMLESS:
        return character
    if character in "\n\t":
        return "\n" if character == "\n" and lines else " "
    if unicodedata.category(character) in ("Zs", "Cn", "Co"):
        return character
    code = ord(character)
    if code < 0x20:
        return chr(0x2400 + code)  # the Control Pictures block mirrors the C0 set
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def shorten(text: str, width: int) -> str:
    """One line of at most `width` characters, with an ellipsis where it was cut."""
    line = " ".join(visible(text).split())
    return line if len(line) <= width else f"{line[: max(width - 1, 0)].rstrip()}…"
