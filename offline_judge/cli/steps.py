"""How one sample was judged, event by event, as lines to read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from offline_judge.domain.ages import earlier
from offline_judge.domain.events import (
    CallFinished,
    EngineStarted,
    ResponseWritten,
    RoundFinished,
    SampleFinished,
    SampleStarted,
    SearchFinished,
    UnknownEvent,
    WarningRaised,
)
from offline_judge.domain.evidence import EvidenceState
from offline_judge.domain.visible import shorten

if TYPE_CHECKING:
    from offline_judge.domain.events import AnyEvent
    from offline_judge.domain.evidence import Passage, SearchHit
    from offline_judge.domain.judgment import Judgment

CITED_CHARACTERS = 300


@dataclass(frozen=True)
class Line:
    """One line, or several joined by line feeds, in one style."""

    text: str
    style: str = ""


@dataclass
class Steps:
    """Turns a sample's events into lines; feed them in order.

    Attributes:
        calls: Tell every request to the judge with its token counts.
        prompts: Tell what filled each prompt and the raw answer too.
    """

    calls: bool = False
    prompts: bool = False
    _passages: dict[str, Passage] = field(default_factory=dict)
    _summaries: set[tuple[int, str]] = field(default_factory=set)
    _found: dict[int, list[Passage]] = field(default_factory=dict)

    def feed(self, event: AnyEvent) -> Iterator[Line]:
        """The lines of one event; none for events that are about something else."""
        if isinstance(event, SampleStarted):
            yield from self._started(event)
        elif isinstance(event, SearchFinished):
            yield from self._search(event)
        elif isinstance(event, CallFinished):
            yield from self._call(event)
        elif isinstance(event, RoundFinished):
            yield from self._round(event)
        elif isinstance(event, ResponseWritten):
            yield _written_line(event)
        elif isinstance(event, SampleFinished):
            yield from self._finished(event)
        elif isinstance(event, WarningRaised):
            yield Line(f"  warning: {event.message}", "yellow")
        elif isinstance(event, UnknownEvent) and event.unreadable:
            yield Line(f"  left out: {event.unreadable}", "yellow")
        elif isinstance(event, EngineStarted) and event.restart:
            yield Line(f"  the engine was restarted ({event.reason})", "yellow")

    def _started(self, event: SampleStarted) -> Iterator[Line]:
        sample = event.sample
        yield Line(f"question  {_indent(sample.question, 10)}", "bold")
        yield Line(f"response  {_indent(sample.response, 10)}")
        if sample.reference:
            yield Line(f"reference {_indent(' | '.join(sample.reference), 10)}")
        if sample.label is not None:
            yield Line(f"label     {_word(sample.label)}")

    def _search(self, event: SearchFinished) -> Iterator[Line]:
        found = self._found.setdefault(event.round, [])
        beyond = f" from rank {event.offset + 1}" if event.offset else ""
        reused = " (searched before in this run)" if event.reused else ""
        where = f"round {event.round}: search" if event.round else "search"
        recorded = _recorded(event)
        yield Line(f"{where} for “{_one(event.query)}”{beyond}{reused}{recorded}", "cyan")
        if event.error:
            yield Line(f"  the search failed: {event.error}", "red")
        elif not event.hits:
            yield Line("  nothing found")
        for hit in event.hits:
            found.append(hit.passage)
            opening = shorten(hit.passage.text, 70)
            title = _one(hit.passage.title)
            kept = _cached(event, hit) if hit.cached else ""
            yield Line(f"  {hit.rank}. [{hit.passage.id}] {title}: {opening}{kept}")

    def _call(self, event: CallFinished) -> Iterator[Line]:
        if event.stage == "relevance.summary" and event.text and not event.problem:
            self._summaries.add((event.round, event.text.strip()))
            yield Line(f"  summary: {_indent(event.text.strip(), 4)}")
        if self.calls or self.prompts:
            yield Line(f"  · {_call_line(event)}", "dim")
        if self.prompts:
            yield from _prompt_lines(event)
        elif event.problem:
            yield Line(f"  answer not accepted: {event.problem}", "yellow")

    def _round(self, event: RoundFinished) -> Iterator[Line]:
        if event.round not in self._found:
            yield Line(f"round {event.round}: search for “{_one(event.query)}”", "cyan")
        self._take_up(event)
        for name in event.evidence:
            says = event.relevance.get(name)
            likely = f" (says what the answer is: {says:.2f})" if says is not None else ""
            yield Line(f"  into the notes: [{name}]{self._title(name)}{likely}")
        if event.fallback:
            yield Line("  the query repeats an earlier one, so the next ranks were taken", "yellow")
        if event.summary and (event.round, event.summary.strip()) not in self._summaries:
            yield Line(f"  summary: {_indent(event.summary.strip(), 4)}")
        if event.stance:
            yield Line(f"  stance: {event.stance}{_masses(event.stance_masses)}")
        if event.missing:
            yield Line(f"  missing: {_indent(event.missing.strip(), 4)}")

    def _take_up(self, event: RoundFinished) -> None:
        found = {passage.id: passage for passage in self._found.get(event.round, [])}
        taken = event.evidence.items()
        self._passages.update({name: found[key] for name, key in taken if key in found})

    def _finished(self, event: SampleFinished) -> Iterator[Line]:
        if event.judgment is None:
            said = (event.reason, event.detail)
            why = ": ".join(part for part in said if part not in ("", event.outcome.value))
            yield Line(f"{event.outcome.value} - {why}", "yellow")
            return
        yield from self._judgment(event.judgment)

    def _judgment(self, judgment: Judgment) -> Iterator[Line]:
        word = _word(judgment.verdict)
        yield Line(
            f"verdict: {word} ({_read(judgment)}; evidence: "
            f"{judgment.evidence_state.value.replace('_', ' ')})",
            f"bold {'green' if judgment.verdict else 'red'}",
        )
        if judgment.evidence_state is EvidenceState.CACHED:
            yield Line("  all of the evidence was found by earlier searches for other queries")
        if judgment.calibrated_verdict is not None:
            yield Line(f"  {_calibrated(judgment)}")
        if judgment.rationale:
            yield Line(f"  because: {_indent(judgment.rationale.strip(), 4)}")
        if judgment.rationale_disagrees:
            yield Line("  the rationale argues for the other label", "yellow")
        for name in judgment.citations:
            yield Line(f"  cited: [{name}]{self._title(name)}{self._place(name)}")
        if judgment.dropped_citations:
            dropped = ", ".join(judgment.dropped_citations)
            yield Line(f"  cited but not in the evidence, dropped: {dropped}", "yellow")

    def _title(self, name: str) -> str:
        passage = self._passages.get(name)
        return f" {_one(passage.title)}" if passage else ""

    def _place(self, name: str) -> str:
        passage = self._passages.get(name)
        if passage is None:
            return ""
        source = f"{passage.source}, " if passage.source else ""
        place = f"{source}document {passage.document_id}, characters {passage.start}-{passage.end}"
        return f" ({place})\n    “{shorten(passage.text, CITED_CHARACTERS)}”"


def _written_line(event: ResponseWritten) -> Line:
    if not event.response:
        return Line(f"{event.candidate} wrote no response: {event.detail}", "yellow")
    cut = " and was cut by its output limit" if event.finish_reason == "length" else ""
    return Line(f"response written by {event.candidate}{cut}", "cyan")


def _recorded(event: SearchFinished) -> str:
    """Told of a search that was not made, because its answer was recorded before."""
    own = [hit for hit in event.hits if not hit.cached]
    if event.reused or not own or not all(hit.found_at for hit in own):
        return ""
    return f" (from the record, found {earlier(min(hit.found_at for hit in own), event.time)})"


def _cached(event: SearchFinished, hit: SearchHit) -> str:
    when = earlier(hit.found_at, event.time)
    return f" (found for another query{f', {when}' if when else ''})"


def _call_line(event: CallFinished) -> str:
    usage, timings = event.usage, event.timings
    name = f"{event.template}, round {event.round}" if event.round else event.template
    attempt = f", attempt {event.attempt + 1}" if event.attempt else ""
    counts = (
        f"{usage.prompt_tokens:,} prompt tokens, {usage.read_anew:,} read anew, "
        f"{usage.completion_tokens:,} written, {timings.prompt_s + timings.generate_s:.1f} s"
    )
    reused = "answer from the cache; " if event.reused else ""
    return f"{name}{attempt}: {reused}{counts}"


def _prompt_lines(event: CallFinished) -> Iterator[Line]:
    yield Line(f"    template {event.template} {event.template_hash[:12]}", "dim")
    if event.follows:
        yield Line(f"    follows prompt {event.follows[:12]}", "dim")
    for name, value in event.values.items():
        kind = f" ({value['untrusted']})" if _is_fenced(value) else ""
        yield Line(f"    {name}{kind} = {_indent(_value(value), 6)}")
    if event.masses is not None:
        outside = 0.0 if event.outside is None else event.outside
        yield Line(f"    read:{_masses({**event.masses, 'neither': outside})}")
    if event.text:
        yield Line(f"    answer = {_indent(event.text, 6)}")
    if event.problem:
        yield Line(f"    not accepted: {event.problem}", "yellow")


def _calibrated(judgment: Judgment) -> str:
    probability = judgment.calibrated_probability
    share = "" if probability is None else f" (probability of true {probability:.2f})"
    return f"calibrated: {_word(bool(judgment.calibrated_verdict))}{share}"


def _is_fenced(value: Any) -> bool:
    """Whether a recorded value was text from outside, which the prompt showed in a fence."""
    return isinstance(value, dict) and {"untrusted", "text"} <= value.keys()


def _value(value: Any) -> str:
    if isinstance(value, list):
        return "".join(f"\n- {_indent(_value(item), 2)}" for item in value) or "(none)"
    if _is_fenced(value):
        return str(value["text"])
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _masses(masses: dict[str, float]) -> str:
    shares = ", ".join(f"{name} {mass:.2f}" for name, mass in masses.items())
    return f" ({shares})" if shares else ""


def _word(label: bool) -> str:
    return "true" if label else "false"


def _one(text: str) -> str:
    return " ".join(text.split())


def _indent(text: str, by: int) -> str:
    return text.replace("\n", f"\n{' ' * by}")


def _read(judgment: Judgment) -> str:
    """How a verdict was come to: by probabilities, or as the judge's bare answer."""
    if judgment.probability is None:
        return "answered, without a probability"
    return (
        f"probability of true {judgment.probability:.2f}, {judgment.outside:.2f} on neither label"
    )
