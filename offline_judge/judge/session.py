"""Owns what a method sees of a backend: `ask` and `read`, checked, retried, cached, recorded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from offline_judge.domain.judgment import UnscoredReason
from offline_judge.domain.message import Constraint, Label, Sampling
from offline_judge.errors import UnscoredError
from offline_judge.judge.asking import SAMPLED_TOP_P, Asking, final_text
from offline_judge.judge.cache import CompletionCache
from offline_judge.judge.calls import Call, Ingredients, Recorder, stored_labels
from offline_judge.judge.transport import Budget, RunMemory, Transport
from offline_judge.prompting.library import TemplateLibrary
from offline_judge.protocols import (
    HERE,
    Answer,
    AnswerSchema,
    At,
    Backend,
    Judge,
    Reading,
    TraceSink,
    Turn,
    Values,
)

T = TypeVar("T")

_SEEDS_PER_VARIANT = 1000
_LABEL_TOKENS = 1


@dataclass(frozen=True)
class JudgeFactory:
    """Makes the judge of each sample; one a run.

    Attributes:
        backend: A started engine.
        library: Templates of the method's namespace.
        cache: Where accepted answers are kept.
        model_sha256: Hash of the weights.
        namespace: The method's namespace in the library, put before bare template names.
        seed: Seed of every first attempt; a variant adds 1000, a further attempt 1.
        engine_version: Part of the cache's key.
        variant_temperature: Temperature of repeats; variant 0 is drawn at temperature 0.
        retry_temperature: Least temperature of a corrective retry.
        memory: What the samples of a run share.
    """

    backend: Backend
    library: TemplateLibrary
    cache: CompletionCache
    model_sha256: str
    namespace: str
    seed: int = 0
    engine_version: str = ""
    variant_temperature: float = 0.7
    retry_temperature: float = 0.7
    memory: RunMemory = field(default_factory=RunMemory, repr=False, compare=False)

    def bind(self, sample_id: str, lane: int, trace: TraceSink) -> Judge:
        """The judge of one sample, whose requests keep to one lane."""
        return Session(self, sample_id, lane, trace)


class Session:
    """A backend bound to one sample and one lane; implements `protocols.Judge`."""

    def __init__(self, factory: JudgeFactory, sample_id: str, lane: int, trace: TraceSink) -> None:
        self._factory = factory
        self._backend = factory.backend
        self._cache = factory.cache
        self._recorder = Recorder(sample_id, trace)
        self._transport = Transport(factory.backend, factory.memory, lane, self._recorder)
        self._ingredients = Ingredients(
            factory.model_sha256, factory.backend.name, factory.engine_version
        )

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
        """See `protocols.Judge.ask`.

        An answer cut off by its limit is asked for once more with twice the limit; one that does
        not parse once more with another seed. What is accepted in the end is kept under the first
        attempt's key, and the conversation goes on from the first prompt and the accepted answer,
        so that a later run which finds it in the cache goes on alike.

        Raises:
            UnscoredError: truncated, overflow, malformed, off-menu, empty, refused or backend.
            TemplateError: no such template, or a value is missing.
        """
        budget = Budget()
        call = await self._open(template, at, values, follows, budget)
        constraint = self._constraint(schema.constraint)
        sampling = Sampling(
            temperature=self._factory.variant_temperature if variant else 0.0,
            top_p=SAMPLED_TOP_P if variant else 1.0,
            seed=self._factory.seed + _SEEDS_PER_VARIANT * variant,
            max_tokens=self._output_room(call, schema.max_tokens),
            stop=schema.stop,
        )
        key = self._ingredients.key(
            call,
            {
                "sampling": sampling.model_dump(mode="json"),
                "schema": schema.key,
                "constrained": constraint is not None,
                "variant": variant,
            },
        )
        found = self._found(key, schema, call)
        if found is not None:
            value, text = found
            self._recorder.reused(call, text, sampling.seed)
        else:
            asking = Asking(
                schema=schema,
                constraint=constraint,
                transport=self._transport,
                recorder=self._recorder,
                library=self._factory.library,
                window=self._backend.capabilities.window,
                retry_temperature=self._factory.retry_temperature,
                budget=budget,
            )
            value, text = await asking.answer(call, sampling)
            self._cache.put(key, {"text": text})
        return Answer(value, text, call.turn(text))

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
        """See `protocols.Judge.read`.

        A reading is kept whatever its masses are, since it is complete and always comes out the
        same; the minimum is applied to what is found in the cache too.

        Raises:
            UnscoredError: off-menu, overflow or backend.
            TemplateError: no such template, or a value is missing.
            BackendError: this engine gives no label probabilities.
        """
        budget = Budget()
        call = await self._open(template, at, values, follows, budget)
        self._check_window(call, _LABEL_TOKENS)
        key = self._ingredients.key(call, {"labels": [[one.name, one.text] for one in labels]})
        kept = stored_labels(self._cache.get(key), labels)
        found = kept
        if found is None:
            found = await self._transport.labels(call, labels, budget)
            self._cache.put(key, found.model_dump(include={"masses", "outside", "unseen"}))
        problem = ""
        if found.inside < minimum_inside:
            problem = f"{found.inside:.3f} of the mass is on the labels, {found.outside:.3f} is not"
        self._recorder.read(
            call,
            found,
            f"{UnscoredReason.OFF_MENU}: {problem}" if problem else "",
            reused=kept is not None,
        )
        if problem:
            raise UnscoredError(
                UnscoredReason.OFF_MENU, f"{problem}; at least {minimum_inside:g} is needed"
            )
        best = next(label for label in labels if label.name == found.best())
        return Reading(found, call.turn(best.text))

    async def _open(
        self, template: str, at: At, values: Values, follows: Turn | None, budget: Budget
    ) -> Call:
        """Render a prompt and let the engine count it."""
        name = f"{self._factory.namespace}/{template}"
        rendered = self._factory.library.render(name, values, follows.messages if follows else None)
        prompt = await self._transport.prepare(rendered.messages, budget)
        return Call(
            template,
            at.round,
            rendered,
            prompt,
            follows=follows.prompt_hash if follows else "",
            reply=follows.messages[-1].content if follows else "",
            place=at.place or (follows.place if follows else ""),
        )

    def _check_window(self, call: Call, output: int) -> None:
        window = self._backend.capabilities.window
        if call.prompt.tokens + output > window:
            raise UnscoredError(
                UnscoredReason.OVERFLOW,
                f"{call.rendered.template}: {call.prompt.tokens} prompt tokens and at least "
                f"{output} for the answer do not fit the window of {window} (setting `window`)",
            )

    def _output_room(self, call: Call, wanted: int) -> int:
        """Output limit that fits the window: what is wanted or, down to half, what is left."""
        self._check_window(call, (wanted + 1) // 2)
        room = self._backend.capabilities.window - call.prompt.tokens
        if room < wanted:
            self._recorder.warn(
                f"{call.rendered.template}: the window leaves {room} of {wanted} output tokens"
            )
        return min(room, wanted)

    def _constraint(self, constraint: Constraint | None) -> Constraint | None:
        """The constraint where the engine obeys its kind; else none and a warning, once a run."""
        if constraint is None or constraint.kind in self._backend.capabilities.constraints:
            return constraint
        warned = self._factory.memory.warned
        if constraint.kind not in warned:
            warned.add(constraint.kind)
            self._recorder.warn(
                f"The engine `{self._backend.name}` does not obey {constraint.kind}; "
                "answers are only checked afterwards"
            )
        return None

    def _found(self, key: str, schema: AnswerSchema[T], call: Call) -> tuple[T, str] | None:
        """The accepted answer of an earlier request, checked again."""
        stored = self._cache.get(key)
        text = stored.get("text") if isinstance(stored, dict) else None
        if not isinstance(text, str):
            return None
        try:
            return schema.parse(final_text(text, call.rendered.messages)), text
        except UnscoredError:
            return None
