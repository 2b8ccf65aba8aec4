"""How much of a window a prompt leaves for its answer."""

from __future__ import annotations

from offline_judge.domain.message import Prompt
from offline_judge.errors import ContextOverflowError

# An answer with less room than this is not worth starting.
SMALLEST_OUTPUT = 16


def room_behind(prompt: Prompt, window: int, least: int) -> int:
    """Tokens that the window leaves behind a prompt.

    Raises:
        ContextOverflowError: fewer than `least`.
    """
    room = window - prompt.tokens
    if room < least:
        raise ContextOverflowError(
            f"The prompt has {prompt.tokens} tokens and a slot holds {window}:"
            f" {max(room, 0)} are left for an answer and {least} are needed",
            remedy="Use a larger `--window`, or shorter evidence.",
        )
    return room
