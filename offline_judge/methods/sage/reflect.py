"""The reflection role: what a round's summary says of the response, and what is missing."""

from __future__ import annotations

import re
from dataclasses import dataclass

from offline_judge.domain.judgment import UnscoredReason
from offline_judge.domain.message import Label
from offline_judge.errors import UnscoredError
from offline_judge.prompting.answers import LineAnswer
from offline_judge.protocols import At, Judge, Turn, Values

STANCES = (
    Label(name="supports", text="Yes"),
    Label(name="contradicts", text="No"),
    Label(name="inconclusive", text="Unknown"),
)
MISSING_TOKENS = 24
MISSING_CHARS = 120
_MISSING = LineAnswer(
    max_chars=MISSING_CHARS, max_tokens=MISSING_TOKENS, labels=("Missing",), overlong="cut"
)
# "search for X" says no more than X.
_INTENT = re.compile(r"\A(?:search for|look up)\s+", re.IGNORECASE)
_SURVIVABLE = {UnscoredReason.MALFORMED, UnscoredReason.EMPTY, UnscoredReason.TRUNCATED}


@dataclass(frozen=True)
class Reflection:
    """A stance with the label masses it was read from, and what should be looked up next."""

    stance: str
    masses: dict[str, float]
    missing: str


class Reflector:
    """Reads the stance from label probabilities and asks what is missing."""

    async def reflect(
        self, number: int, values: Values, judge: Judge, *, ask_missing: bool
    ) -> Reflection:
        """Reflect on one round; in the last one nothing is searched next, so none is asked.

        Raises:
            UnscoredError: the stance cannot be read, or the engine failed.
        """
        reading = await judge.read("reflection", values, STANCES, at=At(round=number))
        missing = await self._missing(number, judge, reading.turn) if ask_missing else ""
        return Reflection(reading.labels.best(), dict(reading.labels.masses), missing)

    async def _missing(self, number: int, judge: Judge, turn: Turn) -> str:
        try:
            answer = await judge.ask(
                "reflection.missing", {}, _MISSING, at=At(round=number), follows=turn
            )
        except UnscoredError as error:
            if error.reason not in _SURVIVABLE:
                raise
            return ""
        return _INTENT.sub("", answer.value).strip("\"'") or answer.value
