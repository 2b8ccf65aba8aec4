"""An engine that says what a test tells it to, and a judge around it."""

from __future__ import annotations

import itertools
import sys
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from offline_judge.domain.capability import EngineFacts
from offline_judge.domain.events import AnyEvent, CallFinished, WarningRaised
from offline_judge.domain.message import (
    Capabilities,
    Constraint,
    Delta,
    FinishReason,
    Generation,
    Label,
    Labels,
    Message,
    Prompt,
    Sampling,
    Usage,
)
from offline_judge.judge.cache import CompletionCache
from offline_judge.judge.session import JudgeFactory
from offline_judge.prompting.fence import Fence
from offline_judge.prompting.library import TemplateLibrary
from offline_judge.protocols import Judge, StartListener, Values

FILES = {
    "verdict.system.jinja": "You judge.",
    "verdict.user.jinja": "Question: {{ question }} Answer:\n{{ response }}\nCorrect?",
    "verdict.why.jinja": "Why?",
    "query.system.jinja": "You write queries.",
    "query.user.jinja": "Question: {{ question }}",
}
_NUMBERS = itertools.count()


@dataclass
class Sent:
    """One request as the engine got it."""

    prompt: Prompt
    sampling: Sampling | None
    constraint: Constraint | None
    affinity: str


@dataclass
class FakeBackend:
    """Gives one action a request: text, a whole `Generation`, label masses, or an error to raise.

    The last action stays. A token is a character without blanks.
    """

    actions: Sequence[Any] = ("fine",)
    name: ClassVar[str] = "fake"
    window: int = 10_000
    constraints: tuple[str, ...] = ("json_schema",)
    token_level: bool = True
    gives_labels: bool = True
    closed_streams: int = 0
    sent: list[Sent] = field(default_factory=list)

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(
            window=self.window,
            slots=1,
            token_level=self.token_level,
            label_probabilities=self.gives_labels,
            constraints=self.constraints,
        )

    @property
    def facts(self) -> EngineFacts:
        return EngineFacts()

    async def start(self, listener: StartListener) -> None:
        listener("ready")

    async def close(self) -> None:
        pass

    async def prepare(
        self, messages: Sequence[Message], *, thinking: bool = False, begun: str = ""
    ) -> Prompt:
        text = "".join(f"[{message.role}]{message.content}" for message in messages)
        ids = tuple(ord(char) for char in text if not char.isspace())
        return Prompt(messages=tuple(messages), text=text, token_ids=ids, tokens=len(ids))

    async def generate(
        self,
        prompt: Prompt,
        sampling: Sampling,
        constraint: Constraint | None = None,
        *,
        affinity: str = "",
    ) -> AsyncIterator[Delta | Generation]:
        action = self._next(Sent(prompt, sampling, constraint, affinity))
        try:
            yield Delta(prompt_read=prompt.tokens)
            if isinstance(action, str):
                action = said(action, prompt)
            if action is not None:
                yield action
        finally:
            self.closed_streams += 1

    async def label_probabilities(
        self, prompt: Prompt, labels: Sequence[Label], *, affinity: str = ""
    ) -> Labels:
        masses = self._next(Sent(prompt, None, None, affinity))
        usage = Usage(prompt_tokens=prompt.tokens, completion_tokens=1)
        return Labels(masses=masses, outside=1 - sum(masses.values()), unseen=0.01, usage=usage)

    def _next(self, sent: Sent) -> Any:
        action = self.actions[min(len(self.sent), len(self.actions) - 1)]
        self.sent.append(sent)
        if isinstance(action, Exception):
            raise action
        return action


def said(text: str, prompt: Prompt | None = None, reason: str = "stop", **usage: int) -> Generation:
    """A finished answer; without a prompt its length is taken to be large."""
    read = prompt.tokens if prompt else 9_999
    return Generation(
        text=text,
        finish_reason=FinishReason(reason),
        usage=Usage(**{"prompt_tokens": read, "completion_tokens": len(text), **usage}),
    )


class Trace:
    """Keeps events."""

    def __init__(self) -> None:
        self.events: list[AnyEvent] = []

    def emit(self, event: AnyEvent) -> None:
        self.events.append(event)

    @property
    def calls(self) -> list[CallFinished]:
        return [event for event in self.events if isinstance(event, CallFinished)]

    @property
    def warnings(self) -> list[str]:
        return [event.message for event in self.events if isinstance(event, WarningRaised)]


def make_library(
    folder: Path, changes: dict[str, str] | None = None, override: Path | None = None
) -> TemplateLibrary:
    """A library over a package made in this folder, its namespace `demo`."""
    package = folder / f"judge_sample_{next(_NUMBERS)}"
    (package / "prompts").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    for name, text in {**FILES, **(changes or {})}.items():
        (package / "prompts" / name).write_text(text, "utf-8")
    sys.path.insert(0, str(folder))
    try:
        return TemplateLibrary({"demo": package.name}, override, Fence(b"secret"))
    finally:
        sys.path.remove(str(folder))


@dataclass
class Bench:
    """A judge on a fake engine with its trace."""

    backend: FakeBackend
    factory: JudgeFactory
    trace: Trace
    judge: Judge

    def again(self) -> Bench:
        """The judge of another sample of the same run."""
        trace = Trace()
        return Bench(self.backend, self.factory, trace, self.factory.bind("other", 0, trace))

    async def tokens(self, template: str, values: Values) -> int:
        """Tokens of a prompt."""
        rendered = self.factory.library.render(f"demo/{template}", values)
        return (await self.backend.prepare(rendered.messages)).tokens

    @property
    def drawn(self) -> list[Sampling]:
        return [sent.sampling for sent in self.backend.sent if sent.sampling is not None]


def make_bench(
    folder: Path, *actions: Any, cache: CompletionCache | None = None, **changes: Any
) -> Bench:
    """A bench; `changes` go to the factory where it has such a field, else to the engine."""
    own = {key: changes.pop(key) for key in tuple(changes) if key in JudgeFactory.__annotations__}
    backend = FakeBackend(actions or ("fine",), **changes)
    settings: dict[str, Any] = {"model_sha256": "ab" * 32, "namespace": "demo", **own}
    settings.setdefault("library", make_library(folder))
    factory = JudgeFactory(backend, cache=cache or CompletionCache(None), **settings)
    trace = Trace()
    return Bench(backend, factory, trace, factory.bind("s1", 2, trace))
