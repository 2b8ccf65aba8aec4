"""Owns what a run amounts to: one pure fold over its events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Literal, TypedDict

from pydantic import Field

from offline_judge.domain.base import Frozen
from offline_judge.domain.events import (
    AnyEvent,
    CallFinished,
    ResponseWritten,
    RunFinished,
    RunStarted,
    SampleFinished,
    SampleStarted,
    SearchFinished,
    UnknownEvent,
    WarningRaised,
)
from offline_judge.domain.evidence import EvidenceState
from offline_judge.domain.judgment import Judgment, Outcome
from offline_judge.domain.message import FinishReason
from offline_judge.domain.run import Agreement, RunSummary
from offline_judge.domain.sample import Metadata, Sample
from offline_judge.metrics.agreement import agreement

UNFINISHED: Literal["unfinished"] = "unfinished"
"""Stands in a row for the outcome of a sample that was taken up and has none yet."""

_FINAL = frozenset({Outcome.SCORED, Outcome.UNSCORED})


class SampleRow(Frozen):
    """One sample of a run as its last finished attempt left it.

    Attributes:
        id: The sample's id.
        question: What was asked.
        response: What was judged.
        label: What people said.
        verdict: What the judge said; None unless scored, like all that follows from it.
        probability: Of `true` among the labels.
        calibrated_verdict: As the calibration of the run reads it; None in a run without one.
        calibrated_probability: Likewise.
        outside: Mass on neither label.
        outcome: How judging ended, or `unfinished`.
        reason: Why it is not scored.
        detail: What was seen then.
        evidence_state: What the search came to.
        rationale: Why the verdict is what it is.
        rationale_disagrees: The rationale argues for the other label.
        citations: Ids of evidence the rationale cites.
        searches: Searches made or reused.
        fallback_rounds: Rounds that took the next ranks.
        seconds: Time of the last finished attempt.
        metadata: All other columns of the data file.
    """

    id: str
    question: str = ""
    response: str = ""
    label: bool | None = None
    verdict: bool | None = None
    probability: float | None = None
    calibrated_verdict: bool | None = None
    calibrated_probability: float | None = None
    outside: float | None = None
    outcome: Outcome | Literal["unfinished"] = UNFINISHED
    reason: str = ""
    detail: str = ""
    evidence_state: EvidenceState | None = None
    rationale: str = ""
    rationale_disagrees: bool = False
    citations: tuple[str, ...] = ()
    searches: int = 0
    fallback_rounds: int = 0
    seconds: float = 0.0
    metadata: Metadata = Field(default_factory=dict)


class RunState:
    """The fold: feed it events in order with `apply`, ask it at any time.

    A sample counts by its last `sample_finished`; what all of its attempts cost is counted.

    Attributes:
        run_id: Named in the summary.
        live: Whether a process works on the run; a run that is neither live nor finished was
            interrupted. Not told by events, so it is set from outside.
        samples: Sample id to the sample, in the order they were first taken up.
        finished: Sample id to how its last finished attempt ended.
        written: Sample id to the response that the candidate wrote.
        warnings: What a reader of the results must know.
    """

    def __init__(self, run_id: str = "", *, live: bool = True) -> None:
        self.run_id = run_id
        self.live = live
        self.samples: dict[str, Sample] = {}
        self.finished: dict[str, SampleFinished] = {}
        self.written: dict[str, ResponseWritten] = {}
        self.warnings: list[str] = []
        self._of_the_run: dict[str, None] = {}
        self._planned = 0
        self._ended: RunFinished | None = None
        self._open: dict[str, None] = {}
        self._costs = _Costs()

    def apply(self, event: AnyEvent) -> None:
        """Take one event in; kinds that do not matter here, unknown ones too, pass by."""
        match event:
            case RunStarted():
                self._planned, self._ended = event.planned, None
                self._open.clear()
            case SampleStarted():
                self.samples[event.sample_id or event.sample.id] = event.sample
                self._open[event.sample_id or event.sample.id] = None
            case SampleFinished():
                self._open.pop(event.sample_id, None)
                self.finished[event.sample_id] = event
            case ResponseWritten():
                self.written[event.sample_id] = event
            case WarningRaised():
                self._warn(event.message, of_the_run=not event.sample_id)
            case UnknownEvent(unreadable=problem) if problem:
                self._warn(f"An event of the trace is left out: {problem}.", of_the_run=True)
            case RunFinished():
                self._ended = event
        self._costs.apply(event)

    def _warn(self, message: str, *, of_the_run: bool) -> None:
        self.warnings.append(message)
        if of_the_run:
            self._of_the_run[message] = None

    @property
    def status(self) -> str:
        """`running`, `interrupted`, or how the last process let go of the run."""
        if self._ended is not None:
            return self._ended.status
        return "running" if self.live else "interrupted"

    @property
    def settled(self) -> frozenset[str]:
        """Ids of samples that resuming does not judge again: scored and unscored ones."""
        ended = self.finished.items()
        return frozenset(name for name, finished in ended if finished.outcome in _FINAL)

    @property
    def unfinished(self) -> tuple[str, ...]:
        """Ids of samples that were taken up and never came to an outcome."""
        return tuple(name for name in self.samples if name not in self.finished)

    @property
    def in_flight(self) -> tuple[str, ...]:
        """Ids of samples that the last process had taken up and not finished."""
        return tuple(self._open)

    def rows(self) -> list[SampleRow]:
        """One row a sample taken up, in the order they were first taken up."""
        names = dict.fromkeys([*self.samples, *self.finished])
        return [_row(name, self.samples.get(name), self.finished.get(name)) for name in names]

    def summary(self) -> RunSummary:
        """Counts and means over everything so far."""
        ended = list(self.finished.values())
        judged = [found for event in ended if (found := _verdict(event)) is not None]
        queried = [found for found in judged if found.evidence_state is not _NOT_SEARCHED]
        costs = self._costs
        return RunSummary(
            run_id=self.run_id,
            status=self.status,
            planned=self._planned,
            outcomes=_counts(event.outcome for event in ended),
            reasons=_counts(event.reason or "unknown" for event in ended if not _verdict(event)),
            evidence_states=_counts(found.evidence_state for found in judged),
            verdict_true=sum(found.verdict for found in judged),
            agreement=self._agreement(lambda found: found.verdict),
            prompt_tokens=costs.prompt_tokens,
            read_anew=costs.read_anew,
            completion_tokens=costs.completion_tokens,
            calls=costs.calls,
            reused_calls=costs.reused_calls,
            searches=costs.searches,
            recorded_searches=costs.recorded_searches,
            failed_searches=costs.failed_searches,
            seconds=round(costs.seconds, 3),
            distinct_queries=_mean([found.distinct_queries for found in queried]),
            fallback_rounds=sum(found.fallback_rounds for found in judged),
            disagreeing_rationales=sum(found.rationale_disagrees for found in judged),
            dropped_citations=sum(len(found.dropped_citations) for found in judged),
            responses_written=len(self.written),
            responses_cut=sum(_is_cut(event) for event in self.written.values()),
            responses_missing=sum(not event.response for event in self.written.values()),
            warnings=tuple(self._of_the_run),
            **self._calibrated(judged),
        )

    def _calibrated(self, judged: list[Judgment]) -> _Calibrated:
        """The second reading, where every judgment has one."""
        verdicts = [found.calibrated_verdict for found in judged]
        if not verdicts or None in verdicts:
            return {}
        return {
            "calibrated_true": verdicts.count(True),
            "calibrated_agreement": self._agreement(lambda found: found.calibrated_verdict),
        }

    def _agreement(self, read: Callable[[Judgment], bool | None]) -> Agreement | None:
        labelled = [
            (sample.label, _verdict(self.finished[name]))
            for name, sample in self.samples.items()
            if sample.label is not None and name in self.finished
        ]
        if not labelled:
            return None
        scored = [(label, read(found)) for label, found in labelled if found is not None]
        return agreement(
            [bool(label) for label, _ in scored],
            [bool(verdict) for _, verdict in scored],
            len(labelled) - len(scored),
        )


def fold(events: Iterable[AnyEvent], run_id: str = "", *, live: bool = True) -> RunState:
    """The state after all events."""
    state = RunState(run_id, live=live)
    for event in events:
        state.apply(event)
    return state


class _Calibrated(TypedDict, total=False):
    calibrated_true: int
    calibrated_agreement: Agreement | None


class _Costs:
    """What all attempts at all samples cost."""

    def __init__(self) -> None:
        self.prompt_tokens = 0
        self.read_anew = 0
        self.completion_tokens = 0
        self.calls = 0
        self.reused_calls = 0
        self.searches = 0
        self.recorded_searches = 0
        self.failed_searches = 0
        self.seconds = 0.0

    def apply(self, event: AnyEvent) -> None:
        match event:
            case CallFinished(reused=True):
                self.reused_calls += 1
            case CallFinished():
                self.calls += 1
                self.prompt_tokens += event.usage.prompt_tokens
                self.read_anew += event.usage.read_anew
                self.completion_tokens += event.usage.completion_tokens
            case SearchFinished(reused=False):
                self.searches += 1
                self.recorded_searches += _is_recorded(event)
                self.failed_searches += bool(event.error)
            case SampleFinished():
                self.seconds += event.seconds


_NOT_SEARCHED = EvidenceState.NOT_SEARCHED


def _is_recorded(event: SearchFinished) -> bool:
    return bool(event.hits) and all(hit.found_at for hit in event.hits)


def _is_cut(event: ResponseWritten) -> bool:
    return bool(event.response) and event.finish_reason is FinishReason.LENGTH


def _row(name: str, sample: Sample | None, finished: SampleFinished | None) -> SampleRow:
    values: dict[str, object] = {"id": name}
    if sample is not None:
        told = ("question", "response", "label", "metadata")
        values |= {field: getattr(sample, field) for field in told}
    if finished is not None:
        told = ("outcome", "reason", "detail", "seconds")
        values |= {field: getattr(finished, field) for field in told}
        judgment = _verdict(finished)
        if judgment is not None:
            fields = SampleRow.model_fields.keys() & Judgment.model_fields.keys()
            values |= {field: getattr(judgment, field) for field in fields}
    return SampleRow.model_validate(values)


def _verdict(finished: SampleFinished) -> Judgment | None:
    return finished.judgment if finished.outcome is Outcome.SCORED else None


def _counts(values: Iterable[str]) -> dict[str, int]:
    return {str(name): number for name, number in sorted(Counter(values).items())}


def _mean(values: list[int]) -> float | None:
    return sum(values) / len(values) if values else None
