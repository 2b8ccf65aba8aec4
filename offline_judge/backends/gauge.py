"""Token counts of texts whose tokenizer is out of reach: bounds, and a look at what was read."""

from __future__ import annotations

from collections.abc import Sequence

from offline_judge.domain.message import Message

_MOST_PER_BYTE = 0.5
"""Tokens a byte that hardly any text exceeds before something is known; our choice."""
_LEAST_PER_BYTE = 0.1
"""Tokens a byte below which no text of words lies (English has about .23); our choice."""
_HEADROOM = 1.25
"""How far a text may exceed the highest share seen so far; our choice."""
PARAGRAPH = (
    "On 14 March 1923 the council of the town met in the old school, because the hall had burned "
    "down in the winter; 37 of its 41 members came, and the others sent letters. They read the "
    "report of the engineer, who thought that a new bridge would cost 186,500 crowns and that the "
    "ferry could not be kept for longer than two years. After five hours they voted for the bridge."
)
"""Ordinary text with names and numbers, to learn from before anything is judged."""
_TOKENS_OF_A_TURN = 16


class TokenGauge:
    """Learns from the server's own counts how many tokens a byte makes.

    Servers without a tokenizer of ours to ask may drop the front of a long prompt and answer what
    is left of it; only the number of tokens that they say they read tells.
    """

    def __init__(self) -> None:
        self._most = 0.0

    def above(self, messages: Sequence[Message]) -> int:
        """A number of tokens that the conversation will hardly exceed."""
        share = _MOST_PER_BYTE
        if self._most:
            share = min(share, self._most * _HEADROOM)
        return int(_bytes(messages) * share) + _TOKENS_OF_A_TURN * (len(messages) + 1)

    def below(self, messages: Sequence[Message]) -> int:
        """A number of tokens that the conversation cannot be less than."""
        return int(_bytes(messages) * _LEAST_PER_BYTE)

    def learn(self, messages: Sequence[Message], tokens: int) -> None:
        """The server read so many tokens of the conversation."""
        size = _bytes(messages)
        if size >= 200:
            self._most = max(self._most, tokens / size)


def _bytes(messages: Sequence[Message]) -> int:
    return sum(len(message.content.encode()) for message in messages)
