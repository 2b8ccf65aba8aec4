"""Has a judge make 48 judgments whose answers are known, in the way a run would have it judge."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

from offline_judge import wiring
from offline_judge.checks.fitness import fitness
from offline_judge.checks.items import ITEMS, ORDERED, REPEATED, Item
from offline_judge.domain.events import AnyEvent, CallFinished
from offline_judge.domain.fitness import Fitness, Judged
from offline_judge.domain.message import Label
from offline_judge.errors import UnscoredError
from offline_judge.judge.cache import CompletionCache
from offline_judge.judge.choosing import ChosenLabel
from offline_judge.judge.session import JudgeFactory
from offline_judge.prompting.fence import Fence
from offline_judge.prompting.library import TemplateLibrary
from offline_judge.protocols import Backend, Judge, StartListener, Untrusted, Values
from offline_judge.runner.engine import Engine
from offline_judge.settings import Settings

NAMESPACE = "check"
REPEATS = 3
_YES = Label(name="true", text="Yes")
_NO = Label(name="false", text="No")
_LABELS = (_YES, _NO)
_TEMPLATE = "verdict"

Progress = Callable[[int, int], None]


@dataclass
class _Calls:
    """A trace that keeps the calls of the one judgment under way."""

    calls: list[CallFinished] = field(default_factory=list)

    def emit(self, event: AnyEvent) -> None:
        if isinstance(event, CallFinished):
            self.calls.append(event)


def check_judge(
    settings: Settings, listener: StartListener, progress: Progress | None = None
) -> Fitness:
    """Start the judge that the settings name, have it judge, and end it.

    Args:
        settings: Name the judge.
        listener: Told while the engine starts.
        progress: Told how many of how many judgments are made.

    Raises:
        OfflineJudgeError: the judge cannot be had, or its engine fails.
    """
    engine, identity = wiring.make_engine(settings, 1)
    library = TemplateLibrary(
        {NAMESPACE: "offline_judge.checks"}, None, Fence(wiring.read_secret(settings))
    )
    factory = JudgeFactory(
        engine.backend,
        library,
        # Nothing that was answered before may stand for the judge of today.
        CompletionCache(None),
        model_sha256=identity.sha256,
        namespace=NAMESPACE,
        seed=settings.seed,
        thinking_tokens=settings.thinking_tokens,
    )
    return asyncio.run(_check(engine, factory, identity.name, listener, progress))


async def _check(
    engine: Engine,
    factory: JudgeFactory,
    name: str,
    listener: StartListener,
    progress: Progress | None,
) -> Fitness:
    await engine.backend.start(listener)
    try:
        engine.check(engine.backend.capabilities)
        begun = time.monotonic()
        total = len(ITEMS) + len(ORDERED) + REPEATS * len(REPEATED)
        judged: list[Judged] = []
        async for one in _all(factory):
            judged.append(one)
            if progress is not None:
                progress(len(judged), total)
        return fitness(name, judged, time.monotonic() - begun)
    finally:
        await engine.backend.close()


async def _all(factory: JudgeFactory) -> AsyncIterator[Judged]:
    """Every judgment, those that share a passage behind one another."""
    ordered = {item.id for item in ORDERED}
    repeated = {item.id for item in REPEATED}
    for item in ITEMS:
        yield await _one(factory, item, "plain", 0)
        if item.id in ordered:
            yield await _one(factory, item, "reversed", 0)
        if item.id in repeated:
            for variant in range(1, REPEATS + 1):
                yield await _one(factory, item, "repeat", variant)


async def _one(factory: JudgeFactory, item: Item, way: str, variant: int) -> Judged:
    trace = _Calls()
    judge = factory.bind(item.id, 0, trace)
    values = _values(item, way)
    said, probability, reason = await _verdict(judge, values, variant)
    prepared = await _prepared(factory.backend, factory.library, values)
    return Judged(
        id=item.id,
        way=way,
        correct=item.correct,
        said=said,
        probability=probability,
        reason=reason,
        long=item.kind == "long",
        counted=trace.calls[0].usage.prompt_tokens if trace.calls else 0,
        prepared=prepared,
    )


async def _verdict(
    judge: Judge, values: Values, variant: int
) -> tuple[bool | None, float | None, str]:
    """Whether the judge says "correct", how probable that is to it, and why it says nothing."""
    try:
        if variant:
            answer = await judge.ask(_TEMPLATE, values, ChosenLabel(_LABELS), variant=variant)
            return answer.value == _YES, None, ""
        labels = (await judge.read(_TEMPLATE, values, _LABELS)).labels
    except UnscoredError as error:
        return None, None, str(error)
    share = labels.share(_YES.name)
    return share >= 0.5, None if labels.chosen_only else share, ""


async def _prepared(backend: Backend, library: TemplateLibrary, values: Values) -> int | None:
    """Prompt tokens by the engine's own count before it is asked; None where it has none."""
    if not backend.capabilities.token_level:
        return None
    rendered = library.render(f"{NAMESPACE}/{_TEMPLATE}", values)
    return (await backend.prepare(rendered.messages)).tokens


def _values(item: Item, way: str) -> Values:
    return {
        "evidence": Untrusted(item.passage, "passage"),
        "question": item.question,
        "response": Untrusted(item.response, "response"),
        "choices": "No or Yes" if way == "reversed" else "Yes or No",
    }
