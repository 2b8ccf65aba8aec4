"""The seams between rooms, one Protocol each."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, Protocol, TypeVar

from offline_judge.domain.capability import EngineFacts
from offline_judge.domain.events import AnyEvent
from offline_judge.domain.evidence import SearchHit
from offline_judge.domain.judgment import Judgment
from offline_judge.domain.message import (
    Capabilities,
    Constraint,
    Delta,
    Generation,
    Label,
    Labels,
    Message,
    Prompt,
    Sampling,
)
from offline_judge.domain.progress import Preflight, Progress
from offline_judge.domain.sample import Sample

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class StartListener(Protocol):
    """Told each phase while an engine starts."""

    def __call__(self, phase: str, detail: str = "") -> None:
        """`phase` is a word such as `spawn`, `load`, `ready`, `restart`; `detail` is for people."""


class Backend(Protocol):
    """An inference engine that works on tokens.

    `affinity` names the shared prefix a request belongs to (a lane and a stage); a backend with
    slots keeps requests of one affinity on one slot, others ignore it.
    """

    name: ClassVar[str]

    @property
    def capabilities(self) -> Capabilities:
        """What the engine does as it runs now; valid after `start`."""

    @property
    def facts(self) -> EngineFacts:
        """What is known of the engine beside that; empty before `start`."""

    async def start(self, listener: StartListener) -> None:
        """Bring the engine up and wait until it is ready.

        Raises:
            BackendStartError: it did not come up, with the engine's own words.
        """

    async def close(self) -> None:
        """End the engine and wait until it is gone. Safe to call twice."""

    async def prepare(
        self, messages: Sequence[Message], *, thinking: bool = False, begun: str = ""
    ) -> Prompt:
        """Render messages with the model's chat template and count their tokens.

        A conversation that ends with an assistant turn is left open for the model to continue it.
        `begun` is the beginning of the answer, put behind the rendering word by word.

        Raises:
            BackendError: an engine that is no `token_level` one was given a begun answer.
        """

    def generate(
        self,
        prompt: Prompt,
        sampling: Sampling,
        constraint: Constraint | None = None,
        *,
        affinity: str = "",
    ) -> AsyncIterator[Delta | Generation]:
        """Stream deltas, then exactly one `Generation`. Closing the iterator cancels.

        Raises:
            ContextOverflowError: prompt and output do not fit one slot.
            BackendCrashedError: the engine died; it may be up again for the next request.
            BackendResponseError: the engine broke its protocol.
        """

    async def label_probabilities(
        self, prompt: Prompt, labels: Sequence[Label], *, affinity: str = ""
    ) -> Labels:
        """Mass of each label right behind the prompt, and outside them, before any sampling.

        A label of several tokens is scored whole by forced decoding.

        Raises:
            SchemaError: two labels share a first token.
        """


class SearchProvider(Protocol):
    """A way to find passages."""

    name: ClassVar[str]

    def identity(self) -> dict[str, Any]:
        """Content identity for the run's manifest: name, hashes, counts. No paths, no times."""

    async def search(self, query: str, *, limit: int, offset: int = 0) -> tuple[SearchHit, ...]:
        """The hits with ranks `offset + 1` to `offset + limit`, best first; empty if none.

        Raises:
            SearchError: the search failed, which is not the same as finding nothing.
        """

    def close(self) -> None:
        """Let go of files and connections. Safe to call twice."""


class Embedder(Protocol):
    """Turns texts into unit vectors of one space. Safe to call from any one thread at a time."""

    @property
    def id(self) -> str:
        """Identity of its space: the card's name, and 12 digits of a hash over what shapes vectors.

        That is the files' content and how they are used (prefixes, pooling, length).
        """

    @property
    def dimension(self) -> int:
        """Length of a vector."""

    def embed(
        self, texts: Sequence[str], *, kind: Literal["query", "passage"]
    ) -> NDArray[np.float32]:
        """Shape (number of texts, dimension), rows of length 1, in the order of the texts.

        Raises:
            BackendError: the embedder failed; nothing is embedded by halves.
        """

    def close(self) -> None:
        """Let go of the model. Safe to call twice."""


class RunListener(Protocol):
    """Watches one run from inside its process. Must not raise and must not block."""

    def phase(self, phase: str, detail: str = "") -> None:
        """The engine or the run entered a phase (`spawn`, `load`, `ready`, `drain` ...)."""

    def preflight(self, report: Preflight) -> None:
        """Called once, before the first sample."""

    def event(self, event: AnyEvent) -> None:
        """An event was recorded."""

    def progress(self, progress: Progress) -> None:
        """Called after each finished sample and about once a second."""


class TraceSink(Protocol):
    """Takes events. Durable when `SampleFinished` and `RunFinished` return."""

    def emit(self, event: AnyEvent) -> None:
        """Stamp and record one event."""


class AnswerSchema(Protocol[T_co]):
    """What an answer must look like: how to ask the engine for it and how to check it."""

    @property
    def key(self) -> str:
        """Identity for the completion cache: changes when acceptance or parsing changes."""

    @property
    def constraint(self) -> Constraint | None:
        """What the engine is told to obey; None leaves it free."""

    @property
    def max_tokens(self) -> int:
        """Output limit of the first attempt."""

    @property
    def stop(self) -> tuple[str, ...]:
        """Texts that end the answer."""

    def salvage(self, text: str) -> str | None:
        """What stands of a text that the output limit cut off, to be parsed; None for nothing."""

    def parse(self, text: str) -> T_co:
        """The checked answer.

        Raises:
            UnscoredError: with reason malformed, off-menu, empty or refused.
        """


@dataclass(frozen=True)
class Untrusted:
    """Text from outside (a response, a passage): enters a prompt fenced and neutralised."""

    text: str
    kind: str


Value = str | int | Untrusted | tuple[str, ...] | tuple[Untrusted, ...]
Values = Mapping[str, Value]


@dataclass(frozen=True)
class At:
    """Where a call stands in a method.

    Attributes:
        round: The method's round, for the trace; 0 outside rounds.
        place: The one of the method's `stages` whose prefix the prompt shares; by default the
            template's stage, or where the conversation it follows was held.
    """

    round: int = 0
    place: str = ""


HERE = At()


@dataclass(frozen=True)
class Turn:
    """A call that was answered; a later call may follow it in the same conversation."""

    messages: tuple[Message, ...]
    prompt_hash: str
    place: str = ""


@dataclass(frozen=True)
class Answer(Generic[T]):
    """A validated answer, its raw text, and the conversation up to and with it."""

    value: T
    text: str
    turn: Turn


@dataclass(frozen=True)
class Reading:
    """A reading of labels, and the conversation as if the best label had been answered."""

    labels: Labels
    turn: Turn


class Judge(Protocol):
    """A backend as a method sees it, bound to one sample and one lane."""

    async def ask(
        self,
        template: str,
        values: Values,
        schema: AnswerSchema[T],
        *,
        at: At = HERE,
        follows: Turn | None = None,
        variant: int = 0,
    ) -> Answer[T]:
        """Render, check the window, generate, validate; one corrective retry with another seed.

        `template` names `<stage>` (a system and a user file) or, with `follows`,
        `<stage>.<turn>` (a user turn appended to that conversation). `variant` is the repeat
        index: it goes into seed and cache key.

        Raises:
            UnscoredError: with the typed reason.
        """

    async def read(
        self,
        template: str,
        values: Values,
        labels: Sequence[Label],
        *,
        at: At = HERE,
        follows: Turn | None = None,
        minimum_inside: float = 0.5,
    ) -> Reading:
        """Render, check the window, and read label masses behind the prompt.

        Raises:
            UnscoredError: off-menu where less than `minimum_inside` is on the labels.
        """


@dataclass(frozen=True)
class MethodContext:
    """All that a method may touch while it judges one sample."""

    judge: Judge
    search: SearchProvider | None
    trace: TraceSink


class Method(Protocol):
    """A published method, a baseline or a control; built once a run from its options."""

    name: ClassVar[str]
    searches: ClassVar[bool]

    @property
    def stages(self) -> tuple[str, ...]:
        """Places with a slot of their own in every lane: stages, or texts that prompts share."""

    @property
    def options(self) -> dict[str, Any]:
        """All options with their values, for the run's manifest."""

    def largest_prompts(self, sample: Sample) -> tuple[tuple[str, Values, int], ...]:
        """(template, values, output tokens) of the largest prompts this sample may need.

        Used before the run to tell how many samples do not fit the window. Evidence that is not
        known yet is stood in for by text of the greatest allowed length.
        """

    async def judge(self, sample: Sample, context: MethodContext) -> Judgment:
        """Judge one sample.

        Raises:
            UnscoredError: it could not be judged, with the typed reason.
        """
