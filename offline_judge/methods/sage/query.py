"""The query role: from question and notes to the next query, without repeating itself."""

from __future__ import annotations

from dataclasses import dataclass

from offline_judge.domain.judgment import UnscoredReason
from offline_judge.errors import UnscoredError
from offline_judge.methods.sage.memory import Memory, normalise_query
from offline_judge.prompting.answers import LineAnswer
from offline_judge.protocols import At, Judge, Values

QUERY_TOKENS = 24
QUERY_CHARS = 160
_LABELS = ("Key words", "Query", "Search")
_QUERY = LineAnswer(max_chars=QUERY_CHARS, max_tokens=QUERY_TOKENS, labels=_LABELS)
_OTHERS = LineAnswer(max_chars=2 * QUERY_CHARS, max_tokens=2 * QUERY_TOKENS, labels=_LABELS)
# Faults of the wording, which a search with the question itself makes up for.
_SURVIVABLE = {UnscoredReason.MALFORMED, UnscoredReason.EMPTY, UnscoredReason.TRUNCATED}


@dataclass(frozen=True)
class PlannedQuery:
    """The query to search with.

    `fallback` says it repeats an earlier one, so that only passages further down are new.
    """

    query: str
    fallback: bool = False


class QueryWriter:
    """Writes queries. It is given the question and the notes; no response is within its reach."""

    async def plan(self, number: int, question: str, memory: Memory, judge: Judge) -> PlannedQuery:
        """The query of round `number`, asked for again where it repeats an earlier one.

        Raises:
            UnscoredError: the judge refused, or the engine failed.
        """
        earlier = {normalise_query(query): query for query in memory.queries}
        try:
            written = await self._write(number, question, memory, judge)
        except UnscoredError as error:
            if error.reason not in _SURVIVABLE:
                raise
            written = question
        repeated = earlier.get(normalise_query(written))
        return PlannedQuery(repeated or written, fallback=repeated is not None)

    async def _write(self, number: int, question: str, memory: Memory, judge: Judge) -> str:
        values: Values = {"question": question, "notes": memory.notes()}
        first = await judge.ask("query", values, _QUERY, at=At(round=number))
        earlier = {normalise_query(query) for query in memory.queries}
        if normalise_query(first.value) not in earlier:
            return first.value
        # Several at once, since a small judge that is asked for one repeats itself even then.
        forbidden: Values = {"forbidden": tuple(dict.fromkeys(memory.queries))}
        others = await judge.ask(
            "query.again", forbidden, _OTHERS, at=At(round=number), follows=first.turn, variant=1
        )
        lists = (entry.strip() for entry in others.value.split(";"))
        fresh = (entry for entry in lists if normalise_query(entry) not in {*earlier, ""})
        return next(fresh, first.value)
