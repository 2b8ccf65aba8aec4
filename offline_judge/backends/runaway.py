"""Notices a generation that has stopped saying anything: endless whitespace or repetition."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

_WHITESPACE = 40
_TOKENS = 96
_LONGEST_CYCLE = 8


class Runaway:
    """Fed with a stream's pieces, says when to stop it."""

    def __init__(self) -> None:
        self._blank = 0
        self._last: deque[int] = deque(maxlen=_TOKENS)

    def feed(self, text: str, token_ids: Sequence[int]) -> bool:
        """True once the stream ends in 40 blanks or in 96 tokens of one short cycle."""
        kept = text.rstrip()
        self._blank = len(text) - len(kept) + (0 if kept else self._blank)
        self._last.extend(token_ids)
        return self._blank >= _WHITESPACE or self._cycles()

    def _cycles(self) -> bool:
        if len(self._last) < _TOKENS:
            return False
        last = list(self._last)
        return any(
            all(last[at] == last[at - period] for at in range(period, _TOKENS))
            for period in range(1, _LONGEST_CYCLE + 1)
        )
