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
from offline_judge.judge.choosing import ChosenLabel, chosen
from offline_judge.judge.thinking import Thinker
from offline_judge.judge.transport import Budget, RunMemory, Transport
from offline_judge.prompting.library import TemplateLibrary
from offline_judge.prompting.thinking import split_thinking
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
        thinking_tokens: Tokens the judge may think before it answers; 0 for no thinking.
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
    thinking_tokens: int = 0
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
        value, text = await self._answer(call, schema, variant, budget)
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

        An engine that names no alternatives is asked for one of the labels instead.

        Raises:
            UnscoredError: off-menu, overflow or backend.
            TemplateError: no such template, or a value is missing.
        """
        budget = Budget()
        call = await self._open(template, at, values, follows, budget)
        if not self._backend.capabilities.label_probabilities:
            return await self._choice(call, labels, budget)
        self._check_window(call, _LABEL_TOKENS + self._two_calls)
        asked = {"labels": [[one.name, one.text] for one in labels]} | self._how_it_thinks()
        key = self._ingredients.key(call, asked)
        kept = stored_labels(self._cache.get(key), labels)
        found = kept
        if found is None:
            thought = await self._thought(call, self._sampling(call, _LABEL_TOKENS, 0), budget)
            found = await self._transport.labels(thought, labels, budget)
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

    async def _answer(
        self, call: Call, schema: AnswerSchema[T], variant: int, budget: Budget
    ) -> tuple[T, str]:
        """The accepted answer and its raw text, found again or asked for."""
        constraint = self._constraint(schema.constraint)
        wanted = self._output_room(call, schema.max_tokens)
        sampling = self._sampling(call, wanted, variant, schema.stop)
        key = self._ingredients.key(
            call,
            {
                "sampling": sampling.model_dump(mode="json"),
                "schema": schema.key,
                "constrained": constraint is not None,
                "variant": variant,
            }
            | self._how_it_thinks(),
        )
        found = self._found(key, schema, call)
        if found is not None:
            self._recorder.reused(call, found[1], sampling.seed)
            return found
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
        value, text = await asking.answer(await self._thought(call, sampling, budget), sampling)
        if call.prompt.thinking and not self._two_calls and not split_thinking(text)[0]:
            self._warn_once(f"`{self._backend.name}` was to think and did not")
        self._cache.put(key, {"text": text})
        return value, text

    async def _choice(self, call: Call, labels: Sequence[Label], budget: Budget) -> Reading:
        """A label as an answer, where the engine gives no probabilities."""
        best, _ = await self._answer(call, ChosenLabel(tuple(labels)), 0, budget)
        return Reading(chosen(labels, best), call.turn(best.text))

    def _sampling(
        self, call: Call, max_tokens: int, variant: int, stop: tuple[str, ...] = ()
    ) -> Sampling:
        # In one request with the answer, thinking takes its tokens out of the same limit.
        together = self._factory.thinking_tokens if call.prompt.thinking else 0
        return Sampling(
            temperature=self._factory.variant_temperature if variant else 0.0,
            top_p=SAMPLED_TOP_P if variant else 1.0,
            seed=self._factory.seed + _SEEDS_PER_VARIANT * variant,
            max_tokens=max_tokens + (0 if self._two_calls else together),
            # What ends an answer may well stand in a thought.
            stop=() if together and not self._two_calls else stop,
        )

    @property
    def _two_calls(self) -> int:
        """Tokens of a thought that is a call of its own; 0 where there is none."""
        return self._factory.thinking_tokens if self._backend.capabilities.token_level else 0

    async def _thought(self, call: Call, draw: Sampling, budget: Budget) -> Call:
        """The call with its thought behind it, where the judge thinks in a call of its own."""
        if not self._two_calls:
            return call
        thinker = Thinker(
            self._transport, self._recorder, self._factory.memory, self._factory.thinking_tokens
        )
        return await thinker.thought(call, draw, budget)

    def _how_it_thinks(self) -> dict[str, int]:
        tokens = self._factory.thinking_tokens
        return {"thinking": tokens} if tokens else {}

    async def _open(
        self, template: str, at: At, values: Values, follows: Turn | None, budget: Budget
    ) -> Call:
        """Render a prompt and let the engine count it."""
        name = f"{self._factory.namespace}/{template}"
        rendered = self._factory.library.render(name, values, follows.messages if follows else None)
        prompt = await self._transport.prepare(
            rendered.messages, budget, thinking=self._factory.thinking_tokens > 0
        )
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
        thought = self._factory.thinking_tokens
        self._check_window(call, (wanted + 1) // 2 + thought)
        room = self._backend.capabilities.window - call.prompt.tokens - thought
        if room < wanted:
            self._recorder.warn(
                f"{call.rendered.template}: the window leaves {room} of {wanted} output tokens"
            )
        return min(room, wanted)

    def _constraint(self, constraint: Constraint | None) -> Constraint | None:
        """The constraint where the engine obeys its kind; else none and a warning, once a run."""
        if constraint is None:
            return None
        can = self._backend.capabilities
        if constraint.kind not in can.constraints:
            self._warn_once(f"The engine `{self._backend.name}` does not obey {constraint.kind}")
            return None
        thinks = self._factory.thinking_tokens > 0
        if thinks and can.thinking_modes and "on-constrained" not in can.thinking_modes:
            self._warn_once(f"Behind thinking, `{self._backend.name}` does not obey a constraint")
            return None
        return constraint

    def _warn_once(self, what: str) -> None:
        warned = self._factory.memory.warned
        if what not in warned:
            warned.add(what)
            self._recorder.warn(f"{what}; answers are only checked afterwards")

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
