"""Reading passages: whether one says what the answer is, what it says, and what of the response.

All prompts about one passage begin with the same head, passage and question, so a passage is read
once for every question and a response costs its own words only. The paper reflects on a summary
of the results; a small judge that reads its own summary loses much of what the passage says, so
here the reflection reads the passage itself. That is our choice.
"""

from __future__ import annotations

import math
import re
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass

from offline_judge.domain.judgment import UnscoredReason
from offline_judge.domain.message import Label
from offline_judge.errors import UnscoredError
from offline_judge.methods.sage.memory import Evidence, Reflection
from offline_judge.methods.verdict import LABELS
from offline_judge.prompting.answers import LineAnswer
from offline_judge.protocols import Answer, At, Judge, Reading, Turn, Untrusted, Values

SUMMARY_TOKENS = 64
SUMMARY_CHARS = 320
MISSING_TOKENS = 24
MISSING_CHARS = 120
_SUMMARY = LineAnswer(
    max_chars=SUMMARY_CHARS, max_tokens=SUMMARY_TOKENS, labels=("Summary",), overlong="cut"
)
_MISSING = LineAnswer(
    max_chars=MISSING_CHARS, max_tokens=MISSING_TOKENS, labels=("Missing",), overlong="cut"
)
_RELEVANT = Label(name="relevant", text="Yes")
_RELEVANCE = (_RELEVANT, Label(name="irrelevant", text="No"))
_LEAST = 1e-6
# "search for X" says no more than X.
_INTENT = re.compile(r"\A(?:search for|look up)\s+", re.IGNORECASE)
_SURVIVABLE = {UnscoredReason.MALFORMED, UnscoredReason.EMPTY, UnscoredReason.TRUNCATED}


@dataclass(frozen=True)
class Relevant:
    """A passage with the judge's probability that it says what the answer is.

    With `chosen_only` that is the judge's answer, 0 or 1, and no probability.
    """

    item: Evidence
    probability: float
    place: str
    turn: Turn
    chosen_only: bool = False

    @property
    def log_odds(self) -> float:
        """Natural logarithm of the odds, within +-14."""
        share = min(max(self.probability, _LEAST), 1 - _LEAST)
        return math.log(share / (1 - share))


@dataclass(frozen=True)
class Reader:
    """Reads the passages of one sample's rounds.

    Attributes:
        question: What was asked.
        passage_chars: Characters of a passage a prompt shows at most.
    """

    question: str
    passage_chars: int

    async def relevance(
        self, number: int, evidence: Sequence[Evidence], judge: Judge
    ) -> tuple[Relevant, ...]:
        """Ask of each passage whether it says what the answer is; most relevant first.

        Raises:
            UnscoredError: a label cannot be read, or the engine failed.
        """
        found: list[Relevant] = []
        for index, item in enumerate(evidence, 1):
            place = place_of(number, index)
            reading = await judge.read(
                "relevance", self.values(item), _RELEVANCE, at=At(number, place)
            )
            share = reading.labels.share(_RELEVANT.name)
            labels = reading.labels
            found.append(Relevant(item, share, place, reading.turn, labels.chosen_only))
        # The sort is stable, so of equals the one the search ranked higher comes first.
        return tuple(sorted(found, key=lambda one: one.probability, reverse=True))

    async def summarise(self, number: int, best: Relevant, judge: Judge) -> str:
        """What the most relevant passage says about the question, in a sentence; may be empty.

        Raises:
            UnscoredError: the judge refused, or the engine failed.
        """
        return await _note(
            judge.ask("relevance.summary", {}, _SUMMARY, at=At(number), follows=best.turn)
        )

    async def reflect(
        self, number: int, passage: Relevant, response: str, judge: Judge
    ) -> Reflection:
        """Read the response against one passage.

        Raises:
            UnscoredError: no label can be read, or the engine failed.
        """
        values = self.values(passage.item) | {"response": Untrusted(response, "response")}
        reading = await judge.read("reflection", values, LABELS, at=At(number, passage.place))
        return Reflection(passage.item, passage.log_odds, reading)

    async def recall(self, response: str, judge: Judge) -> Reading:
        """Read the response by what the judge itself knows.

        Raises:
            UnscoredError: no label can be read, or the engine failed.
        """
        values: Values = {
            "question": self.question,
            "response": Untrusted(response, "response"),
        }
        return await judge.read("knowledge", values, LABELS)

    async def missing(self, number: int, turn: Turn, judge: Judge) -> str:
        """What should be looked up next; empty where the judge's words are of no use.

        Raises:
            UnscoredError: the judge refused, or the engine failed.
        """
        missing = await _note(
            judge.ask("reflection.missing", {}, _MISSING, at=At(number), follows=turn)
        )
        return _INTENT.sub("", missing).strip("\"'") or missing

    def values(self, item: Evidence) -> dict[str, str | Untrusted]:
        """What the prompts about one passage have in common."""
        shown = f"[{item.id}] {_cut(item.shown, self.passage_chars)}"
        return {"evidence": Untrusted(shown, "evidence"), "question": self.question}


async def _note(asked: Awaitable[Answer[str]]) -> str:
    """A note for the next query writer, empty where the judge's words are of no use.

    No verdict hangs on it, so a fault of its wording leaves no sample unscored.
    """
    try:
        return (await asked).value
    except UnscoredError as error:
        if error.reason not in _SURVIVABLE:
            raise
        return ""


def place_of(number: int, index: int) -> str:
    """The slot of a round's passage.

    Passages of the first round, which all responses to a question share, are kept apart.
    """
    return f"{'first' if number == 1 else 'later'}{index}"


def _cut(text: str, limit: int) -> str:
    """Shorten at a space, so that no word is shown in half."""
    if len(text) <= limit:
        return text
    head = text[:limit]
    return head[: head.rfind(" ")] if " " in head else head
