"""Everything that happens in a run, as a discriminated union on `event`.

A trace is a sequence of these; results, live view, resume and index are folds over it. The
writer stamps `seq` (gapless from 0 in each writer's file) and `time` (UTC, ISO 8601).
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, TypeAdapter, ValidationError

from offline_judge.domain.base import Frozen
from offline_judge.domain.capability import CapabilityReport
from offline_judge.domain.evidence import SearchHit
from offline_judge.domain.judgment import Judgment, Outcome
from offline_judge.domain.message import Capabilities, FinishReason, Timings, Usage
from offline_judge.domain.sample import Sample


class EventBase(Frozen):
    """What every event has; `sample_id` is empty for events of the whole run."""

    seq: int = 0
    time: str = ""
    sample_id: str = ""


class RunStarted(EventBase):
    """A process took up the run: for the first time, or to resume it."""

    event: Literal["run_started"] = "run_started"
    planned: int
    reused: int = 0
    resumed: bool = False


class EngineStarted(EventBase):
    """An engine became ready, for the first time or after a crash (`restart` counts those).

    `role` says what it does in the run: judge, or write the responses (`candidate`);
    `capabilities` what it was seen to do at this start, `probe` what was seen when all was tried
    out, and `offloaded` its layers on a GPU, and its layers in all.
    """

    event: Literal["engine_started"] = "engine_started"
    engine: str
    version: str = ""
    model: str = ""
    window: int
    slots: int
    start_s: float = 0.0
    restart: int = 0
    reason: str = ""
    role: str = "judge"
    capabilities: Capabilities | None = None
    offloaded: tuple[int, int] | None = None
    probe: CapabilityReport | None = None


class ResponseWritten(EventBase):
    """The candidate answered a sample's question, before anything is judged.

    `response` is what will be judged; where it is empty, `reason` and `detail` say why there is
    none. An answer that the output limit cut (`finish_reason` is `length`) is judged as it is.
    """

    event: Literal["response_written"] = "response_written"
    candidate: str
    response: str = ""
    finish_reason: FinishReason | None = None
    reason: str = ""
    detail: str = ""


class SampleStarted(EventBase):
    """A sample was taken up; carries it whole, so that a trace reads without its data file."""

    event: Literal["sample_started"] = "sample_started"
    sample: Sample


class CallFinished(EventBase):
    """One request to the judge, or its answer taken from the completion cache (`reused`).

    The prompt is `template` (by hash, its source is in the blobs) filled with `values`, appended
    to the prompt of call `follows` and the judge's `reply` to it where those are not empty.
    `problem` says why an answer was not accepted. For a reading of labels `masses` and `outside`
    are set and `text` is empty.
    """

    event: Literal["call_finished"] = "call_finished"
    stage: str
    round: int = 0
    attempt: int = 0
    template: str
    template_hash: str
    values: dict[str, Any] = Field(default_factory=dict)
    follows: str = ""
    reply: str = ""
    prompt_hash: str
    text: str = ""
    masses: dict[str, float] | None = None
    outside: float | None = None
    finish_reason: FinishReason | None = None
    seed: int = 0
    usage: Usage
    timings: Timings = Timings()
    reused: bool = False
    problem: str = ""

    @property
    def writing(self) -> tuple[int, float]:
        """Tokens written and the seconds that took; none for a reading, though it is timed."""
        if self.masses is not None or self.timings.generate_s <= 0:
            return 0, 0.0
        return self.usage.completion_tokens, self.timings.generate_s


class SearchFinished(EventBase):
    """One search: its hits, or `error` where it failed (which is not "nothing found").

    `reused` says the run had made this very search before and kept its hits.
    """

    event: Literal["search_finished"] = "search_finished"
    round: int = 0
    query: str
    provider: str
    offset: int = 0
    hits: tuple[SearchHit, ...] = ()
    error: str = ""
    seconds: float = 0.0
    reused: bool = False


class RoundFinished(EventBase):
    """One round of SAGE as the memory keeps it.

    `evidence` ties each id of the notes (`E1`, ...) to the id of its passage in the round's hits,
    `relevance` to the judge's probability that it says what the answer is; `probability` is that
    of the response being correct by this round's evidence; `fallback` says that the query
    repeated an earlier one.
    """

    event: Literal["round_finished"] = "round_finished"
    round: int
    query: str
    evidence: dict[str, str] = Field(default_factory=dict)
    summary: str = ""
    stance: str = ""
    stance_masses: dict[str, float] = Field(default_factory=dict)
    relevance: dict[str, float] = Field(default_factory=dict)
    probability: float | None = None
    missing: str = ""
    fallback: bool = False


class SampleFinished(EventBase):
    """The last event of a sample. `reason` and `detail` explain any outcome but `scored`."""

    event: Literal["sample_finished"] = "sample_finished"
    outcome: Outcome
    judgment: Judgment | None = None
    reason: str = ""
    detail: str = ""
    seconds: float = 0.0


class WarningRaised(EventBase):
    """Something a reader of the results must know."""

    event: Literal["warning"] = "warning"
    message: str


class RunFinished(EventBase):
    """The process let go of the run in good order."""

    event: Literal["run_finished"] = "run_finished"
    status: Literal["completed", "limit", "drained", "cancelled", "failed"]
    message: str = ""


class UnknownEvent(BaseModel):
    """An event of a newer program, kept as it was read."""

    model_config = ConfigDict(frozen=True, extra="allow")

    event: str
    seq: int = 0
    time: str = ""
    sample_id: str = ""
    # No field, so that it is neither read from a trace nor written to one.
    _problem: str = PrivateAttr(default="")

    @property
    def unreadable(self) -> str:
        """What is wrong with an event whose kind is known but whose shape is not; else empty."""
        return self._problem


Event = Annotated[
    RunStarted
    | EngineStarted
    | ResponseWritten
    | SampleStarted
    | CallFinished
    | SearchFinished
    | RoundFinished
    | SampleFinished
    | WarningRaised
    | RunFinished,
    Field(discriminator="event"),
]
AnyEvent = (
    RunStarted
    | EngineStarted
    | ResponseWritten
    | SampleStarted
    | CallFinished
    | SearchFinished
    | RoundFinished
    | SampleFinished
    | WarningRaised
    | RunFinished
    | UnknownEvent
)

_ADAPTER: TypeAdapter[Any] = TypeAdapter(Event)
_KNOWN = frozenset(
    {
        "run_started",
        "engine_started",
        "response_written",
        "sample_started",
        "call_finished",
        "search_finished",
        "round_finished",
        "sample_finished",
        "warning",
        "run_finished",
    }
)


def parse_event(raw: dict[str, Any]) -> AnyEvent:
    """Read one event; a kind or a shape this program does not know comes back as `UnknownEvent`.

    Where the kind is known, `unreadable` says what is wrong with the shape.

    Raises:
        ValidationError: `raw` has no `event` name at all.
    """
    if raw.get("event") in _KNOWN:
        try:
            event: AnyEvent = _ADAPTER.validate_python(raw)
        except ValidationError as error:
            unknown = UnknownEvent.model_validate(raw)
            first = error.errors(include_url=False)[0]
            field = ".".join(str(part) for part in first["loc"][1:])
            unknown._problem = f"`{raw['event']}` cannot be read: `{field}`: {first['msg']}"
            return unknown
        return event
    return UnknownEvent.model_validate(raw)
