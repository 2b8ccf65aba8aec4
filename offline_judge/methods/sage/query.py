"""The query role: from question and notes to the next query, without repeating itself."""

from __future__ import annotations

from dataclasses import dataclass

from offline_judge.domain.judgment import UnscoredReason
from offline_judge.errors import UnscoredError
from offline_judge.methods.sage.memory import Memory, normalise_query
from offline_judge.prompting.answers import LineAnswer
from offline_judge.protocols import Judge, Values

QUERY_TOKENS = 24
QUERY_CHARS = 160
_QUERY = LineAnswer(
    max_chars=QUERY_CHARS, max_tokens=QUERY_TOKENS, labels=("Query", "New query", "Search")
)
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
        values: Values = {"question": question, "notes": memory.notes()}
        earlier = {normalise_query(query): query for query in memory.written_queries}
        try:
            first = await judge.ask("query", values, _QUERY, round=number)
            written = first.value
            if normalise_query(written) in earlier:
                forbidden = {"forbidden": tuple(earlier.values())}
                again = await judge.ask(
                    "query.again", forbidden, _QUERY, round=number, follows=first.turn, variant=1
                )
                written = again.value
        except UnscoredError as error:
            if error.reason not in _SURVIVABLE:
                raise
            written = question
        repeats = normalise_query(written) in earlier
        memory.written_queries.append(written)
        return PlannedQuery(earlier.get(normalise_query(written), written), fallback=repeats)
