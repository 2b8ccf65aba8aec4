"""Owns how text that is not ours enters a prompt: cleaned always, fenced when it is untrusted."""

from __future__ import annotations

import hashlib
import hmac
import re
import unicodedata
from collections.abc import Iterable

from offline_judge.domain.base import text_hash
from offline_judge.protocols import Untrusted

_CONSONANTS = "bcdfghjklmnpqrstvwxz"
_TAG_LETTERS = 4
_TRIES_PER_LENGTH = 32

# Turn, tool and thinking marks of the chat templates of Qwen, Llama, Mistral, Gemma and their
# kin. A tokenizer reads them as control tokens wherever they stand. `<|...|>`, `<|...>` and
# `<...|>` are caught by their shape (`\uff5c` is DeepSeek's bar), the others by name.
_ANGLE_NAMES = (
    r"/?s|/?think|/?tool_call|/?tool_response|/?tools|bos|eos|pad|unk|mask|"
    r"start_of_turn|end_of_turn|start_of_image|end_of_image|/?fim_\w{1,12}|unused\d{1,4}"
)
_SQUARE_NAMES = (
    "INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT|ARGS|THINK|"
    "MODEL_SETTINGS|IMG|PREFIX|SUFFIX|MIDDLE|gMASK|BOS|EOS"
)
_INSIDE = r"[^\s<>|\uff5c]{1,64}"
_CONTROL = re.compile(
    rf"<(?=[|\uff5c]{_INSIDE}[|\uff5c]?>|{_INSIDE}[|\uff5c]>|(?:{_ANGLE_NAMES})>|</?SYS>>)"
    rf"|\[(?=/?(?:{_SQUARE_NAMES})\])"
)

_KEPT_CONTROLS = frozenset("\n\t")
# Format characters that are seen: Arabic, Syriac and Kaithi number and verse signs.
_SEEN_FORMAT = frozenset("\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2")
_ZWNJ, _ZWJ = "\u200c", "\u200d"
# Invisible although Unicode files them under letters or marks: the grapheme joiner, Hangul
# fillers, inherent Khmer vowels.
_INVISIBLE = frozenset("\u034f\u115f\u3164\uffa0\u17b4\u17b5\u2065")


def neutralise(text: str) -> str:
    """Make foreign text safe to stand in a prompt; ordinary text comes back unchanged.

    Control tokens of chat templates get a space behind their first character. Invisible
    characters go: control characters but newline and tab, zero-width and bidirectional marks,
    soft hyphens, Unicode tags, second variation selectors. The joiners ZWNJ and ZWJ stay where
    writing needs them, behind a letter of an Arabic, Indic or other joining script and between
    emoji; flags spelt with Unicode tags lose their region. Line ends become newlines, lone
    surrogates U+FFFD, and all is NFC. Applying it twice changes nothing more.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\x85", "\n")
    seen = [_replaced(char) for char in text if not _is_dropped(char)]
    normal = unicodedata.normalize("NFC", _drop_joiners("".join(seen)))
    return _CONTROL.sub(lambda match: f"{match.group()} ", normal)


def has_control_token(text: str) -> bool:
    """Whether a chat template's control token stands in the text."""
    return _CONTROL.search(text) is not None


class Fence:
    """Marks off untrusted text with tags that its author cannot have written.

    Args:
        secret: This installation's secret, so that nobody can work out a tag beforehand.
    """

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def tag(self, text: str) -> str:
        """The tag of a text: four consonants (never a word), more where all four are taken.

        The same text has the same tag in every prompt, which keeps its tokens in the engine's
        prefix cache; the text never contains its own tag, so it cannot close its fence.
        """
        folded = text.lower()
        identity = text_hash(text)
        counter = 0
        while True:
            length = _TAG_LETTERS + counter // _TRIES_PER_LENGTH
            digest = hmac.new(self._secret, f"{identity}:{counter}".encode(), hashlib.sha256)
            number = int.from_bytes(digest.digest(), "big")
            letters = []
            for _ in range(length):
                number, index = divmod(number, len(_CONSONANTS))
                letters.append(_CONSONANTS[index])
            tag = "".join(letters)
            if tag not in folded:
                return tag
            counter += 1

    def wrap(self, untrusted: Untrusted) -> str:
        """The text, cleaned, between `<tag>` and `</tag>`."""
        clean = neutralise(untrusted.text)
        return fenced(clean, self.tag(clean))


_CLOSING = re.compile(rf" </([{_CONSONANTS}]{{{_TAG_LETTERS},}})>")


def unfenced(answer: str, prompt: Iterable[str]) -> str:
    """An answer without the fence tags of the prompt it replies to, where it copied some."""
    tags = {tag for text in prompt for tag in _CLOSING.findall(text)}
    for tag in tags:
        answer = re.sub(rf"<{tag}> ?| ?</{tag}>", "", answer)
    return answer


def fenced(clean: str, tag: str) -> str:
    """A cleaned text inside a fence with a known tag, such as one read from a trace."""
    return f"<{tag}> {clean} </{tag}>"


def _replaced(char: str) -> str:
    return "\ufffd" if "\ud800" <= char <= "\udfff" else char


def _is_dropped(char: str) -> bool:
    if char < "\x7f":
        return char < " " and char not in _KEPT_CONTROLS
    if char in (_ZWNJ, _ZWJ) or char in _SEEN_FORMAT:
        return False
    # The whole of plane 14 but its variation selectors is ignorable: Unicode tags and the like.
    if "\U000e0000" <= char <= "\U000e0fff":
        return not _is_variation_selector(char)
    if char in _INVISIBLE or "\ufff0" <= char <= "\ufff8":
        return True
    return unicodedata.category(char) in ("Cc", "Cf")


def _drop_joiners(text: str) -> str:
    """Drop joiners and variation selectors that nothing visible in front of them calls for."""
    kept: list[str] = []
    for index, char in enumerate(text):
        before = kept[-1] if kept else ""
        if char in (_ZWNJ, _ZWJ):
            after = text[index + 1 : index + 2]
            emoji = char == _ZWJ and (before == "\ufe0f" or _is_emoji(before)) and _is_emoji(after)
            if not emoji and not _is_joining(before):
                continue
        elif _is_variation_selector(char) and not _takes_selector(before):
            continue
        kept.append(char)
    return "".join(kept)


def _is_variation_selector(char: str) -> bool:
    return (
        "\ufe00" <= char <= "\ufe0f"
        or "\U000e0100" <= char <= "\U000e01ef"
        or char in ("\u180b", "\u180c", "\u180d", "\u180f")
    )


def _takes_selector(char: str) -> bool:
    invisible = char in ("", _ZWNJ, _ZWJ) or _is_variation_selector(char)
    return not invisible and not char.isspace()


def _is_joining(char: str) -> bool:
    """Whether a letter or mark belongs to a script whose spelling uses joiners."""
    if not char or unicodedata.category(char)[0] not in "LM":
        return False
    return (
        "\u0600" <= char <= "\u08ff"  # Arabic, Syriac, N'Ko and neighbours
        or "\u0900" <= char <= "\u0dff"  # the scripts of India and Sri Lanka
        or "\u0f00" <= char <= "\u109f"  # Tibetan, Burmese
        or "\u1780" <= char <= "\u18af"  # Khmer, Mongolian
        or "\ufb50" <= char <= "\ufdff"  # Arabic presentation forms
        or "\ufe70" <= char <= "\ufefc"
        or "\U00011000" <= char <= "\U00011fff"  # further Brahmic scripts
    )


def _is_emoji(char: str) -> bool:
    if not char:
        return False
    skin_tone = "\U0001f3fb" <= char <= "\U0001f3ff"
    return skin_tone or unicodedata.category(char) == "So"
