"""llama.cpp's own server, spoken to in its native dialect on the level of tokens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

from offline_judge.backends import probe
from offline_judge.backends.dialect import completion_body, finish_reason, timings, usage
from offline_judge.backends.engine import Engine
from offline_judge.backends.labels import (
    NEGLIGIBLE,
    Alternatives,
    LabelPlan,
    MassCount,
    Tokens,
    plan_labels,
)
from offline_judge.backends.options import EngineOptions
from offline_judge.backends.rates import Rates
from offline_judge.backends.runaway import Runaway
from offline_judge.backends.slots import SlotTable
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
    Timings,
    Usage,
    merge_same_role,
)
from offline_judge.errors import (
    BackendCrashedError,
    BackendError,
    BackendResponseError,
    BackendStartError,
    ContextOverflowError,
)
from offline_judge.protocols import Backend, StartListener

# An answer with less room than this is not worth starting.
_SMALLEST_OUTPUT = 16
_SETTLE_S = 3.0
_POLL_S = 0.05
_ALTERNATIVES = 100


@dataclass
class _Hold:
    """A slot in this request's hands, and whether the engine may still be working on it."""

    slot: int
    busy: bool = False


class LlamaCppBackend:
    """One GGUF model behind slots that each keep their last prompt as a prefix cache."""

    name: ClassVar[str] = "llama_cpp"

    def __init__(self, options: EngineOptions) -> None:
        self._options = options
        self._engine = Engine(options)
        self._slots = SlotTable(options.slots)
        self._capabilities: Capabilities | None = None
        self._tokens: dict[str, Tokens] = {}
        self._suspects: dict[Tokens, int] = {}
        self._settling: set[asyncio.Task[None]] = set()
        self.rates = Rates()

    @property
    def capabilities(self) -> Capabilities:
        """What the engine does as it runs now; valid after `start`."""
        assert self._capabilities is not None, "read before `start`"
        return self._capabilities

    @property
    def engine(self) -> Engine:
        """The supervised child: its version, address and number of restarts."""
        return self._engine

    @property
    def version(self) -> str:
        """Version of xllamacpp."""
        return self._engine.version

    @property
    def start_s(self) -> float:
        """Seconds the last start took."""
        return self._engine.start_s

    @property
    def restarts(self) -> int:
        """Times the engine was started again."""
        return self._engine.restarts

    @property
    def prompt_rate(self) -> float:
        """Prompt tokens read a second so far; 0 before any."""
        return self.rates.prompt

    @property
    def generate_rate(self) -> float:
        """Tokens generated a second so far; 0 before any."""
        return self.rates.generate

    async def start(self, listener: StartListener) -> None:
        """Bring the engine up, read back its window, and try out what it promises.

        Raises:
            BackendStartError: it did not come up, or answers of two requests get mixed up.
        """
        try:
            await self._engine.start(listener)
            listener("probe", "window, constraint, seed, cross-talk")
            await self._read_capabilities()
            self._capabilities = await probe.tried(self, self._word_prompt)
        except BaseException:
            await self.close()
            raise
        self._slots = SlotTable(self._options.slots)
        window, slots = self.capabilities.window, self.capabilities.slots
        asked = "" if window == self._options.window else f" (asked for {self._options.window})"
        listener("ready", f"{slots} slots of {window} tokens{asked}")

    async def close(self) -> None:
        """End the engine and wait until it is gone. Safe to call twice."""
        for task in tuple(self._settling):
            task.cancel()
        await asyncio.gather(*self._settling, return_exceptions=True)
        await self._engine.close()

    async def prepare(self, messages: Sequence[Message], *, thinking: bool = False) -> Prompt:
        """Render messages with the model's chat template and count their tokens.

        A conversation that ends with an assistant turn is left open for the model to continue it.
        """
        turns = messages if self._options.system_role else _without_system(messages)
        body = {
            "messages": [turn.model_dump() for turn in turns],
            "chat_template_kwargs": {self._options.thinking_switch: thinking},
        }
        text = str((await self._post("/apply-template", body))["prompt"])
        ids = await self._tokenize(text, whole=True)
        return Prompt(messages=tuple(messages), text=text, token_ids=ids, tokens=len(ids))

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
        room = self._room(prompt, min(sampling.max_tokens, _SMALLEST_OUTPUT))
        answer = _Answer(prompt)
        async with self._hold(affinity) as hold:
            body = completion_body(
                prompt.token_ids, hold.slot, sampling, min(sampling.max_tokens, room), constraint
            )
            async with aclosing(self._events(prompt, body, hold)) as events:
                async for event in events:
                    if delta := answer.take(event):
                        yield delta
                    if answer.runaway:
                        break
        self.rates.add(answer.usage, answer.timings)
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
        plan = await self._plan(labels)
        self._room(prompt, plan.longest)
        async with self._hold(affinity) as hold:
            first, final = await self._alternatives(prompt, (), hold)
            count, steps = await self._count(prompt, plan, first, hold)
        masses, outside = count.settle()
        seen, took = usage(final), timings(final)
        self.rates.add(seen, took)
        return Labels(
            masses=masses,
            outside=outside,
            unseen=min(count.unseen, outside),
            usage=seen.model_copy(update={"completion_tokens": steps}),
            timings=took,
        )

    async def _count(
        self, prompt: Prompt, plan: LabelPlan, first: Alternatives, hold: _Hold
    ) -> tuple[MassCount, int]:
        """Sum each label's spellings, reading further tokens where a spelling has several."""
        count, steps = MassCount(unseen=first.unseen), 1
        for name, spellings in plan.spellings.items():
            for tokens in spellings:
                mass = first.masses.get(tokens[0], 0.0)
                for at in range(1, len(tokens)):
                    if mass < NEGLIGIBLE:
                        mass = 0.0
                        break
                    further, _ = await self._alternatives(prompt, tokens[:at], hold)
                    count.unseen += mass * further.unseen
                    mass *= further.masses.get(tokens[at], 0.0)
                    steps += 1
                count.add(name, mass)
        return count, steps

    async def _alternatives(
        self, prompt: Prompt, forced: Tokens, hold: _Hold
    ) -> tuple[Alternatives, dict[str, Any]]:
        """The distribution right behind the prompt and the forced tokens, and the final event."""
        whole = prompt.model_copy(
            update={
                "token_ids": prompt.token_ids + forced,
                "tokens": prompt.tokens + len(forced),
            }
        )
        body = completion_body(whole.token_ids, hold.slot, Sampling(max_tokens=1), 1, None)
        body |= {"n_probs": _ALTERNATIVES, "post_sampling_probs": False}
        found: Alternatives | None = None
        final: dict[str, Any] = {}
        async with aclosing(self._events(whole, body, hold)) as events:
            async for event in events:
                for position in event.get("completion_probabilities", [])[:1]:
                    found = Alternatives.parse(position.get("top_logprobs", []))
                final = event
        if found is None:
            raise BackendResponseError("The engine named no alternatives for a label's token")
        return found, final

    async def _events(
        self, prompt: Prompt, body: dict[str, Any], hold: _Hold
    ) -> AsyncGenerator[dict[str, Any], None]:
        """The events of one completion, the final one last and checked."""
        if self._suspects.get(prompt.token_ids, 0) >= 2:
            raise BackendResponseError(
                "The engine crashed twice over this prompt, so it is not sent again"
            )
        final: dict[str, Any] | None = None
        try:
            wire = await self._engine.wire()
            hold.busy = True
            async with wire.stream("/completion", body) as events:
                async for event in events:
                    if event.get("stop"):
                        final = event
                    else:
                        yield event
        except BackendCrashedError as error:
            hold.busy = False
            self._suspects[prompt.token_ids] = self._suspects.get(prompt.token_ids, 0) + 1
            raise await self._engine.crashed(error) from error
        except ContextOverflowError:
            hold.busy = False
            raise
        if final is None:
            raise BackendResponseError("The stream ended without its final event")
        hold.busy = False
        _check_final(final, prompt, hold.slot)
        self._suspects.pop(prompt.token_ids, None)
        self._engine.succeeded()
        yield final

    @asynccontextmanager
    async def _hold(self, affinity: str) -> AsyncIterator[_Hold]:
        """Hold the affinity's slot; it is free again when the engine has let go of it."""
        hold = _Hold(await self._slots.acquire(affinity))
        try:
            yield hold
        finally:
            if hold.busy:
                # A task of its own: whoever cancels a second time must not leave the slot behind.
                task = asyncio.create_task(self._settle(hold.slot))
                self._settling.add(task)
                task.add_done_callback(self._settling.discard)
                await asyncio.shield(task)
            else:
                self._slots.release(hold.slot)

    async def _settle(self, slot: int) -> None:
        """Wait until the engine has dropped a request that was cancelled; else start it again."""
        limit = _SETTLE_S + self.rates.batch_s(self._options.chosen_batch())
        try:
            async with asyncio.timeout(limit):
                # The server has no event for this, so it is asked again and again.
                while await self._is_processing(slot):  # noqa: ASYNC110
                    await asyncio.sleep(_POLL_S)
        except TimeoutError:
            await self._engine.restart(f"slot {slot} still busy {limit:.1f} s after a cancel")
        except BackendError:
            # The engine is gone, and its slots with it; the next request starts it again.
            pass
        finally:
            self._slots.release(slot)

    async def _is_processing(self, slot: int) -> bool:
        states = await (await self._engine.wire()).get("/slots")
        return any(state["id"] == slot and state["is_processing"] for state in states)

    def _room(self, prompt: Prompt, least: int) -> int:
        window = self.capabilities.window
        room = window - prompt.tokens
        if room < least:
            raise ContextOverflowError(
                f"The prompt has {prompt.tokens} tokens and a slot holds {window}:"
                f" {max(room, 0)} are left for an answer and {least} are needed",
                remedy="Use a larger `--window`, or shorter evidence.",
            )
        return room

    async def _plan(self, labels: Sequence[Label]) -> LabelPlan:
        for label in labels:
            for variant in label.variants():
                if variant not in self._tokens:
                    self._tokens[variant] = await self._tokenize(variant, whole=False)
        return plan_labels(labels, self._tokens)

    async def _word_prompt(self, text: str) -> Prompt:
        """A prompt of bare text, without a chat around it."""
        ids = await self._tokenize(text, whole=True)
        return Prompt(messages=(), text=text, token_ids=ids, tokens=len(ids))

    async def _tokenize(self, text: str, *, whole: bool) -> Tokens:
        body = {"content": text, "add_special": whole, "parse_special": whole}
        return tuple((await self._post("/tokenize", body))["tokens"])

    async def _post(self, path: str, body: dict[str, Any]) -> Any:
        try:
            return await (await self._engine.wire()).post(path, body)
        except BackendCrashedError as error:
            raise await self._engine.crashed(error) from error

    async def _read_capabilities(self) -> None:
        try:
            states = await (await self._engine.wire()).get("/slots")
            window = min(int(state["n_ctx"]) for state in states)
        except (KeyError, TypeError, ValueError) as error:
            raise BackendStartError(f"The engine does not tell its slots: {error!r}") from error
        self._slots = SlotTable(len(states))
        self._capabilities = Capabilities(
            window=window,
            slots=len(states),
            token_level=True,
            label_probabilities=True,
            constraints=("json_schema",),
        )


class _Answer:
    """Builds up one generation from its events."""

    def __init__(self, prompt: Prompt) -> None:
        self._prompt = prompt
        self._texts: list[str] = []
        self._ids: list[int] = []
        self._cached = 0
        self._watch = Runaway()
        self._final: dict[str, Any] | None = None
        self.runaway = False

    def take(self, event: dict[str, Any]) -> Delta | None:
        """Take in one event; gives what a watcher is told of it."""
        if progress := event.get("prompt_progress"):
            self._cached = int(progress.get("cache", 0))
            return Delta(prompt_read=int(progress["processed"]))
        if event.get("stop"):
            self._final = event
        text, ids = str(event.get("content", "")), event.get("tokens", [])
        self._texts.append(text)
        self._ids.extend(ids)
        if self._final is None:
            self.runaway = self._watch.feed(text, ids)
        return Delta(text=text) if text else None

    @property
    def usage(self) -> Usage:
        """Token counts; of an answer that was stopped half-way, as far as they are known."""
        if self._final is not None:
            return usage(self._final)
        return Usage(
            prompt_tokens=self._prompt.tokens,
            cached_tokens=self._cached,
            completion_tokens=len(self._ids),
        )

    @property
    def timings(self) -> Timings:
        """The engine's own; none of an answer that was stopped half-way."""
        return timings(self._final) if self._final is not None else Timings()

    def generation(self) -> Generation:
        """The finished answer. One that ran away counts as cut off by its length."""
        ended = FinishReason.LENGTH if self._final is None else finish_reason(self._final)
        return Generation(
            text="".join(self._texts),
            token_ids=tuple(self._ids),
            finish_reason=ended,
            usage=self.usage,
            timings=self.timings,
        )


def _check_final(final: dict[str, Any], prompt: Prompt, slot: int) -> None:
    read = usage(final).prompt_tokens
    if final.get("truncated") or read != prompt.tokens:
        raise BackendResponseError(
            f"The engine cut the prompt: {prompt.tokens} tokens were sent and it read {read}"
        )
    if final.get("id_slot") != slot:
        raise BackendResponseError(
            f"Slot {final.get('id_slot')} answered a request that was pinned to slot {slot}"
        )


def _without_system(messages: Sequence[Message]) -> tuple[Message, ...]:
    """For templates without a system role: its text leads the first user turn."""
    as_user = [
        Message(role="user", content=turn.content) if turn.role == "system" else turn
        for turn in messages
    ]
    return merge_same_role(as_user)


BACKEND: type[Backend] = LlamaCppBackend
