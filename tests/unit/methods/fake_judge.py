"""A judge for tests of methods: answers by stage, and remembers all it was asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar

from offline_judge.domain.events import AnyEvent
from offline_judge.domain.evidence import Passage, SearchHit
from offline_judge.domain.message import Label, Labels, Usage
from offline_judge.errors import SearchError
from offline_judge.protocols import HERE, Answer, AnswerSchema, At, Reading, Turn, Values

T = TypeVar("T")


@dataclass(frozen=True)
class Call:
    template: str
    values: dict[str, Any]
    follows: Turn | None
    variant: int
    at: At = HERE


@dataclass
class FakeJudge:
    """`answer(template, values)` gives the raw text; `masses` gives label masses by template."""

    answer: Callable[[str, Values], str]
    masses: Callable[[str, Values], dict[str, float]] = lambda template, values: {}
    calls: list[Call] = field(default_factory=list)

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
        self.calls.append(Call(template, dict(values), follows, variant, at))
        text = self.answer(template, values)
        return Answer(schema.parse(text), text, Turn((), f"{len(self.calls)}"))

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
        self.calls.append(Call(template, dict(values), follows, 0, at))
        given = self.masses(template, values)
        masses = {label.name: given.get(label.name, 0.0) for label in labels}
        outside = 1 - sum(masses.values())
        found = Labels(masses=masses, outside=outside, usage=Usage(prompt_tokens=1))
        return Reading(found, Turn((), f"{len(self.calls)}"))

    def asked(self, template: str) -> list[Call]:
        return [call for call in self.calls if call.template == template]


class FakeSearch:
    """Gives numbered passages; `down` makes every search fail, `empty` makes it find nothing."""

    name: ClassVar[str] = "fake"

    def __init__(self, *, down: bool = False, empty: bool = False) -> None:
        self.down, self.empty = down, empty
        self.queries: list[str] = []

    def identity(self) -> dict[str, Any]:
        return {"provider": self.name}

    async def search(self, query: str, *, limit: int, offset: int = 0) -> tuple[SearchHit, ...]:
        self.queries.append(query)
        if self.down:
            raise SearchError("the index is gone")
        if self.empty:
            return ()
        return tuple(
            SearchHit(
                rank=rank,
                score=1.0 / rank,
                passage=Passage(
                    id=f"p{rank}", document_id="d", title=f"T{rank}", text=f"Fact number {rank}."
                ),
            )
            for rank in range(offset + 1, offset + limit + 1)
        )

    def close(self) -> None:
        return None


@dataclass
class ListTrace:
    events: list[AnyEvent] = field(default_factory=list)

    def emit(self, event: AnyEvent) -> None:
        self.events.append(event)
