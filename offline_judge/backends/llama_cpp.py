"""llama.cpp's own server, spoken to in its native dialect on the level of tokens."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any, ClassVar

from offline_judge.backends import probe
from offline_judge.backends.answer import StreamedAnswer
from offline_judge.backends.dialect import completion_body, timings, usage
from offline_judge.backends.engine import Engine
from offline_judge.backends.labels import Alternatives, LabelTokens, Tokens, count_masses
from offline_judge.backends.launch_llama import ScriptLauncher
from offline_judge.backends.options import EngineOptions
from offline_judge.backends.requests import Hold, Requests
from offline_judge.backends.room import SMALLEST_OUTPUT, room_behind
from offline_judge.backends.serving import Serving
from offline_judge.backends.tried import TriedBackend
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
    without_system,
)
from offline_judge.errors import (
    BackendResponseError,
    BackendStartError,
)
from offline_judge.protocols import Backend

_ALTERNATIVES = 100


class LlamaCppBackend(TriedBackend):
    """One GGUF model behind slots that each keep their last prompt as a prefix cache."""

    name: ClassVar[str] = "llama_cpp"
    slot_word: ClassVar[str] = "slots"

    def __init__(self, options: EngineOptions, engine: Serving | None = None) -> None:
        super().__init__(engine or Engine(options, ScriptLauncher()))
        self._options = options
        self._requests = Requests(self.engine, options.slots, self.rates)
        self._labels = LabelTokens(lambda text: self._tokenize(text, whole=False))

    async def told(self) -> Capabilities:
        """Its slots and their window.

        Raises:
            BackendStartError: it tells none, or serves a model of another name.
        """
        window, slots = await self._told_slots()
        await self._check_name()
        # A server of somebody else's has the slots it has, whatever number was wanted.
        self._requests = Requests(self.engine, slots, self.rates)
        return Capabilities(
            window=window,
            slots=slots,
            token_level=True,
            label_probabilities=True,
            constraints=("json_schema",),
        )

    async def repeated(self, which: int) -> str:
        """What a slot goes on with behind what its cache holds already and one word repeated."""
        ids = await self._tokenize(probe.repetition(which), whole=False)
        async with self._requests.hold_slot(which) as hold:
            room = self.capabilities.window - len(ids) - probe.REPEATED.max_tokens
            whole = self._requests.heads.get(which, ())[:room] + ids
            prompt = Prompt(messages=(), token_ids=whole, tokens=len(whole))
            answer = StreamedAnswer(prompt)
            body = completion_body(whole, which, probe.REPEATED, None)
            async with aclosing(self._requests.events(prompt, body, hold)) as events:
                async for event in events:
                    answer.take(event)
        return answer.generation().text

    async def close(self) -> None:
        """End the engine and wait until it is gone. Safe to call twice."""
        await self._requests.close()
        await super().close()

    async def prepare(
        self, messages: Sequence[Message], *, thinking: bool = False, begun: str = ""
    ) -> Prompt:
        """Render messages with the model's chat template and count their tokens.

        A conversation that ends with an assistant turn is left open for the model to continue it.
        """
        turns = messages if self._options.system_role else without_system(messages)
        body = {
            "messages": [turn.model_dump() for turn in turns],
            "chat_template_kwargs": {self._options.thinking_switch: thinking},
        }
        text = str((await self._requests.post("/apply-template", body))["prompt"]) + begun
        ids = await self._tokenize(text, whole=True)
        return Prompt(
            messages=tuple(messages),
            text=text,
            token_ids=ids,
            tokens=len(ids),
            thinking=thinking,
        )

    async def generate(
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
            BackendCrashedError: the engine died; it is started again for the next request.
            BackendResponseError: the engine broke its protocol.
        """
        room = self._room(prompt, min(sampling.max_tokens, SMALLEST_OUTPUT))
        self._mix_ups.raise_found()
        capped = sampling.model_copy(update={"max_tokens": min(sampling.max_tokens, room)})
        answer = StreamedAnswer(prompt)
        async with self._requests.hold(affinity) as hold:
            body = completion_body(prompt.token_ids, hold.slot, capped, constraint)
            async with aclosing(self._requests.events(prompt, body, hold)) as events:
                async for event in events:
                    if delta := answer.take(event):
                        yield delta
                    if answer.runaway:
                        break
        self._count(answer.usage, answer.timings)
        yield answer.generation()

    async def label_probabilities(
        self, prompt: Prompt, labels: Sequence[Label], *, affinity: str = ""
    ) -> Labels:
        """Mass of each label right behind the prompt, and outside them, before any sampling.

        A label of several tokens is scored whole by forced decoding.

        Raises:
            SchemaError: two labels share a first token.
            ContextOverflowError: prompt and label do not fit one slot.
        """
        plan = await self._labels.plan(labels)
        self._room(prompt, plan.longest)
        self._mix_ups.raise_found()
        async with self._requests.hold(affinity) as hold:
            first, final = await self._alternatives(prompt, (), hold)

            async def further(forced: Tokens) -> Alternatives:
                return (await self._alternatives(prompt, forced, hold))[0]

            count, steps = await count_masses(plan, first, further)
        seen, took = usage(final), timings(final)
        self._count(seen, took)
        return count.read(seen.model_copy(update={"completion_tokens": steps}), took)

    async def slot_states(self) -> list[dict[str, Any]]:
        """What the engine says of each slot: `id`, `n_ctx`, `is_processing` and more."""
        states: list[dict[str, Any]] = await self._requests.get("/slots")
        return states

    async def _alternatives(
        self, prompt: Prompt, forced: Tokens, hold: Hold
    ) -> tuple[Alternatives, dict[str, Any]]:
        """The distribution right behind the prompt and the forced tokens, and the final event."""
        whole = prompt.model_copy(
            update={
                "token_ids": prompt.token_ids + forced,
                "tokens": prompt.tokens + len(forced),
            }
        )
        body = completion_body(whole.token_ids, hold.slot, Sampling(max_tokens=1), None)
        body |= {"n_probs": _ALTERNATIVES, "post_sampling_probs": False}
        found: Alternatives | None = None
        final: dict[str, Any] = {}
        async with aclosing(self._requests.events(whole, body, hold)) as events:
            async for event in events:
                for position in event.get("completion_probabilities", [])[:1]:
                    found = Alternatives.parse(position.get("top_logprobs", []))
                final = event
        if found is None:
            raise BackendResponseError("The engine named no alternatives for a label's token")
        return found, final

    def _room(self, prompt: Prompt, least: int) -> int:
        return room_behind(prompt, self.capabilities.window, least)

    async def _tokenize(self, text: str, *, whole: bool) -> Tokens:
        body = {"content": text, "add_special": whole, "parse_special": whole}
        return tuple((await self._requests.post("/tokenize", body))["tokens"])

    async def _check_name(self) -> None:
        """Only its name stands for the weights of somebody else's server, so it must be right."""
        wanted = self._options.served_as
        if not wanted:
            return
        listed = (await self._requests.get("/v1/models")).get("data") or ()
        names = [str(entry.get("id")) for entry in listed]
        if wanted not in names and wanted not in {Path(name).name for name in names}:
            raise BackendStartError(
                f"The llama-server at {self.engine.address} has no model `{wanted}`; it serves: "
                f"{', '.join(names) or 'none'}",
                remedy="Name one of them: --judge llama-server:MODEL",
            )

    async def _told_slots(self) -> tuple[int, int]:
        """Tokens of a slot, and how many slots there are."""
        try:
            states = await self.slot_states()
        except BackendResponseError:
            # Somebody else's server may keep its slots to itself.
            told = await self._requests.get("/props")
            return int(told["default_generation_settings"]["n_ctx"]), int(told["total_slots"])
        return min(int(state["n_ctx"]) for state in states), len(states)


BACKEND: type[Backend] = LlamaCppBackend
