"""Method `sage` (arXiv 2504.07385): rounds of query, search, summary, reflection, then a verdict.

One judge plays all roles. The query writer sees the question and the notes, never the response;
the response reaches it only through what the reflections say is missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from offline_judge.domain.base import Frozen
from offline_judge.domain.events import RoundFinished
from offline_judge.domain.judgment import Judgment
from offline_judge.domain.sample import Sample
from offline_judge.methods.options import read_options
from offline_judge.methods.sage.choose import decisive, has_a_say
from offline_judge.methods.sage.memory import Evidence, Memory, Reflection, Round
from offline_judge.methods.sage.options import SageOptions
from offline_judge.methods.sage.query import QUERY_TOKENS, PlannedQuery, QueryWriter
from offline_judge.methods.sage.read import (
    MISSING_CHARS,
    SUMMARY_CHARS,
    Reader,
    Relevant,
    place_of,
)
from offline_judge.methods.sage.search import Searches
from offline_judge.methods.verdict import (
    CORRECT,
    RATIONALE_TOKENS,
    Verdict,
    explain,
    verdict_of,
)
from offline_judge.protocols import Method, MethodContext, Untrusted, Values


class Sage:
    """Search-augmented evaluation with N rounds."""

    name: ClassVar[str] = "sage"
    searches: ClassVar[bool] = True
    option_model: ClassVar[type[Frozen]] = SageOptions

    def __init__(self, options: SageOptions) -> None:
        self._options = options
        self._searches = Searches()
        self._writer = QueryWriter()

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> Sage:
        """Build from raw options.

        Raises:
            UsageError: naming an option that is unknown or out of range.
        """
        return cls(read_options(SageOptions, cls.name, options))

    @property
    def stages(self) -> tuple[str, ...]:
        """The query writer's head, one place for each passage of a round, and own knowledge.

        Passages of the first round, which all responses to a question share, have places of their
        own, so that later rounds do not push them out.
        """
        rounds = range(1, min(self._options.searched_rounds, 2) + 1)
        places = [place_of(n, i) for n in rounds for i in range(1, self._options.results + 1)]
        return (*(("query",) if self._options.writes_queries else ()), *places, "knowledge")

    @property
    def options(self) -> dict[str, Any]:
        """All options with their values."""
        return self._options.model_dump()

    def largest_prompts(self, sample: Sample) -> tuple[tuple[str, Values, int], ...]:
        """The largest prompts, with passages and notes of the greatest length."""
        passage = Evidence("E99", "", _filler(self._options.passage_chars))
        note = _filler(SUMMARY_CHARS + MISSING_CHARS)
        query: Values = {
            "question": sample.question,
            "notes": (note,) * (self._options.searched_rounds - 1),
        }
        response: Values = {
            **self._reader(sample).values(passage),
            "response": Untrusted(sample.response, "response"),
        }
        return (
            *((("query", query, QUERY_TOKENS * 2),) if self._options.writes_queries else ()),
            ("reflection", response, 2 * RATIONALE_TOKENS),
        )

    async def judge(self, sample: Sample, context: MethodContext) -> Judgment:
        """Judge one sample in N rounds.

        Raises:
            UnscoredError: with the typed reason.
        """
        memory = Memory()
        for number in range(1, self._options.searched_rounds + 1):
            await self._round(number, sample, memory, context)
            if self._options.sufficiency and _stance(memory.rounds[-1].reflections) in _SETTLED:
                break
        return _judgment(await self._verdict(sample, memory, context), memory)

    async def _round(
        self, number: int, sample: Sample, memory: Memory, context: MethodContext
    ) -> None:
        planned = await self._plan(number, sample, memory, context)
        evidence = await self._search(number, planned, memory, context)
        reader = self._reader(sample)
        relevant = await reader.relevance(number, evidence, context.judge)
        reflections = [
            await reader.reflect(number, passage, sample.response, context.judge)
            for passage in _worth_reading(relevant, memory)
        ]
        summary = missing = ""
        # Both are for the next query writer's eyes only.
        if self._options.writes_queries and number < self._options.searched_rounds and relevant:
            if relevant[0].log_odds >= 0:
                summary = await reader.summarise(number, relevant[0], context.judge)
            missing = await reader.missing(number, reflections[0].reading.turn, context.judge)
        finished = Round(
            number=number,
            query=planned.query,
            evidence=evidence,
            relevance={one.item.id: one.probability for one in relevant if not one.chosen_only},
            summary=summary,
            reflections=tuple(reflections),
            missing=missing,
            fallback=planned.fallback,
        )
        memory.rounds.append(finished)
        context.trace.emit(_round_event(finished))

    async def _plan(
        self, number: int, sample: Sample, memory: Memory, context: MethodContext
    ) -> PlannedQuery:
        if number >= self._options.first_written:
            planned = await self._writer.plan(number, sample.question, memory, context.judge)
        else:
            planned = PlannedQuery(sample.question, fallback=number > 1)
        memory.queries.append(planned.query)
        return planned

    async def _search(
        self, number: int, planned: PlannedQuery, memory: Memory, context: MethodContext
    ) -> tuple[Evidence, ...]:
        # Passages in the notes are passed over, so as many more are asked for.
        limit = self._options.results + len(memory.evidence)
        hits = await self._searches.find(context, planned.query, limit=limit, round=number)
        memory.searches += 1
        if hits is None:
            memory.failed += 1
            return ()
        return memory.add_hits(hits, self._options.results)

    async def _verdict(self, sample: Sample, memory: Memory, context: MethodContext) -> Verdict:
        reflections = memory.reflections()
        if reflections:
            reflection = decisive(reflections)
            reading, why = reflection.reading, "reflection.rationale"
            evidence_ids: tuple[str, ...] = (reflection.item.id,)
        else:
            reading = await self._reader(sample).recall(sample.response, context.judge)
            why, evidence_ids = "knowledge.rationale", ()
        verdict = verdict_of(reading.labels)
        if not self._options.rationale:
            return verdict
        return await explain(
            context.judge, verdict, reading.turn, template=why, evidence_ids=evidence_ids
        )

    def _reader(self, sample: Sample) -> Reader:
        return Reader(sample.question, self._options.passage_chars)


_SETTLED = {"supports", "contradicts"}


def _worth_reading(relevant: tuple[Relevant, ...], memory: Memory) -> tuple[Relevant, ...]:
    """The round's best passage, and those that have a say beside all that was read before."""
    if not relevant:
        return ()
    before = [one.relevance for one in memory.reflections()]
    best = max(relevant[0].log_odds, *before) if before else relevant[0].log_odds
    return (relevant[0], *(one for one in relevant[1:] if has_a_say(one.log_odds, best)))


def _stance(reflections: tuple[Reflection, ...]) -> str:
    """What a round's evidence says of the response; `inconclusive` where none says the answer."""
    if not reflections or max(one.relevance for one in reflections) < 0:
        return "inconclusive"
    supports = decisive(reflections).reading.labels.share(CORRECT.name) >= 0.5
    return "supports" if supports else "contradicts"


def _filler(chars: int) -> str:
    """Ordinary words of a total length, standing in for text that is not known yet."""
    return ("evidence " * (chars // 9 + 1))[:chars].strip()


def _round_event(round_: Round) -> RoundFinished:
    decided = decisive(round_.reflections).reading.labels if round_.reflections else None
    return RoundFinished(
        round=round_.number,
        query=round_.query,
        evidence={item.id: item.passage_id for item in round_.evidence},
        relevance=round_.relevance,
        summary=round_.summary,
        stance=_stance(round_.reflections),
        probability=verdict_of(decided).probability if decided else None,
        missing=round_.missing,
        fallback=round_.fallback,
    )


def _judgment(verdict: Verdict, memory: Memory) -> Judgment:
    return Judgment(
        verdict=verdict.correct,
        probability=verdict.probability,
        outside=verdict.outside,
        rationale=verdict.rationale,
        rationale_disagrees=verdict.disagrees,
        citations=verdict.citations,
        dropped_citations=verdict.dropped,
        evidence_state=memory.state(),
        searches=memory.searches,
        fallback_rounds=sum(round_.fallback for round_ in memory.rounds),
        distinct_queries=memory.distinct_queries(),
    )


METHOD: type[Method] = Sage
