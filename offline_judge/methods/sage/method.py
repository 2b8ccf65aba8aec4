"""Method `sage` (arXiv 2504.07385): rounds of query, search, summary, reflection, then a verdict.

One judge plays four roles. The query writer sees the question and the notes, never the response;
the response reaches it only through what the reflections say is missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from offline_judge.domain.events import RoundFinished
from offline_judge.domain.evidence import EvidenceState
from offline_judge.domain.judgment import Judgment
from offline_judge.domain.sample import Sample
from offline_judge.methods.options import read_options
from offline_judge.methods.sage.choose import choose_evidence
from offline_judge.methods.sage.memory import Evidence, Memory, Round
from offline_judge.methods.sage.options import SageOptions
from offline_judge.methods.sage.query import QUERY_TOKENS, PlannedQuery, QueryWriter
from offline_judge.methods.sage.reflect import MISSING_CHARS, MISSING_TOKENS, Reflector
from offline_judge.methods.sage.search import Searches
from offline_judge.methods.verdict import RATIONALE_TOKENS, Verdict, reach_verdict
from offline_judge.prompting.answers import LineAnswer
from offline_judge.protocols import At, Method, MethodContext, Untrusted, Values

SUMMARY_TOKENS = 64
SUMMARY_CHARS = 320
_SUMMARY = LineAnswer(
    max_chars=SUMMARY_CHARS, max_tokens=SUMMARY_TOKENS, labels=("Summary",), overlong="cut"
)
_NO_EVIDENCE = {
    EvidenceState.NONE_FOUND: "The search found nothing.",
    EvidenceState.FAILED: "The search could not be reached, so there is no evidence either way.",
}


class Sage:
    """Search-augmented evaluation with N rounds."""

    name: ClassVar[str] = "sage"
    searches: ClassVar[bool] = True

    def __init__(self, options: SageOptions) -> None:
        self._options = options
        self._searches = Searches()
        self._writer = QueryWriter()
        self._reflector = Reflector()

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> Sage:
        """Build from raw options.

        Raises:
            UsageError: naming an option that is unknown or out of range.
        """
        return cls(read_options(SageOptions, cls.name, options))

    @property
    def stages(self) -> tuple[str, ...]:
        """The four roles, each with a prompt head of its own."""
        return ("query", "summary", "reflection", "verdict")

    @property
    def options(self) -> dict[str, Any]:
        """All options with their values."""
        return self._options.model_dump()

    def largest_prompts(self, sample: Sample) -> tuple[tuple[str, Values, int], ...]:
        """The largest prompt of each role, with passages and notes of the greatest length."""
        passage = _filler(self._options.passage_chars)
        note = _filler(SUMMARY_CHARS + MISSING_CHARS)
        shown = tuple(
            Evidence(f"E{i + 1}", "", passage)
            for i in range(max(self._options.results, self._options.evidence))
        )
        return (
            (
                "query",
                {"question": sample.question, "notes": (note,) * (self._options.rounds - 1)},
                QUERY_TOKENS * 2,
            ),
            (
                "summary",
                self._summary_values(sample, shown[: self._options.results]),
                SUMMARY_TOKENS,
            ),
            ("reflection", _reflection_values(sample, _filler(SUMMARY_CHARS)), MISSING_TOKENS),
            (
                "verdict",
                self._verdict_values(sample, shown[: self._options.evidence], _full(shown)),
                2 * RATIONALE_TOKENS,
            ),
        )

    async def judge(self, sample: Sample, context: MethodContext) -> Judgment:
        """Judge one sample in N rounds.

        Raises:
            UnscoredError: with the typed reason.
        """
        memory = Memory()
        for number in range(1, self._options.rounds + 1):
            await self._round(number, sample, memory, context)
        evidence = choose_evidence(memory, sample.question, self._options.evidence)
        verdict = await reach_verdict(
            context.judge,
            self._verdict_values(sample, evidence, memory),
            rationale=self._options.rationale,
            evidence_ids=tuple(item.id for item in evidence),
        )
        return _judgment(verdict, memory)

    async def _round(
        self, number: int, sample: Sample, memory: Memory, context: MethodContext
    ) -> None:
        planned = await self._writer.plan(number, sample.question, memory, context.judge)
        evidence = await self._search(number, planned, memory, context)
        summary = await self._summarise(number, sample, evidence, context)
        reflection = await self._reflector.reflect(
            number,
            _reflection_values(sample, summary),
            context.judge,
            ask_missing=number < self._options.rounds,
        )
        finished = Round(
            number=number,
            query=planned.query,
            evidence=evidence,
            summary=summary,
            stance=reflection.stance,
            stance_masses=reflection.masses,
            missing=reflection.missing,
            fallback=planned.fallback,
        )
        memory.rounds.append(finished)
        context.trace.emit(_round_event(finished))

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

    async def _summarise(
        self, number: int, sample: Sample, evidence: tuple[Evidence, ...], context: MethodContext
    ) -> str:
        if not evidence:
            return ""
        values = self._summary_values(sample, evidence)
        answer = await context.judge.ask("summary", values, _SUMMARY, at=At(round=number))
        return answer.value

    def _summary_values(self, sample: Sample, evidence: tuple[Evidence, ...]) -> Values:
        return {"question": sample.question, "results": self._shown(evidence)}

    def _verdict_values(
        self, sample: Sample, evidence: tuple[Evidence, ...], memory: Memory
    ) -> Values:
        return {
            "evidence": self._shown(evidence),
            "no_evidence": _NO_EVIDENCE.get(memory.state(), ""),
            "notes": memory.summaries_of(evidence),
            "question": sample.question,
            "response": Untrusted(sample.response, "response"),
        }

    def _shown(self, evidence: tuple[Evidence, ...]) -> Untrusted:
        limit = self._options.passage_chars
        lines = [f"[{item.id}] {_cut(item.shown, limit)}" for item in evidence]
        return Untrusted("\n".join(lines), "evidence")


def _reflection_values(sample: Sample, summary: str) -> Values:
    return {
        "question": sample.question,
        "response": Untrusted(sample.response, "response"),
        "summary": summary,
    }


def _cut(text: str, limit: int) -> str:
    """Shorten at a space, so that no word is shown in half."""
    if len(text) <= limit:
        return text
    head = text[:limit]
    return head[: head.rfind(" ")] if " " in head else head


def _filler(chars: int) -> str:
    """Ordinary words of a total length, standing in for text that is not known yet."""
    return ("evidence " * (chars // 9 + 1))[:chars].strip()


def _full(evidence: tuple[Evidence, ...]) -> Memory:
    """A memory whose every piece of evidence has a note of the greatest length."""
    summary = _filler(SUMMARY_CHARS)
    rounds = [Round(i, "", (item,), summary, "", {}, "") for i, item in enumerate(evidence, 1)]
    return Memory(rounds=rounds, evidence={item.id: item for item in evidence})


def _round_event(round_: Round) -> RoundFinished:
    return RoundFinished(
        round=round_.number,
        query=round_.query,
        evidence={item.id: item.passage_id for item in round_.evidence},
        summary=round_.summary,
        stance=round_.stance,
        stance_masses=round_.stance_masses,
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
