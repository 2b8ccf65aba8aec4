"""A deterministic backend without a model, for tests of everything above it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import ClassVar

from offline_judge.backends.labels import Tokens, plan_labels
from offline_judge.backends.script import (
    Fault,
    ScriptOptions,
    default_json,
    default_masses,
    default_text,
    pieces,
    token_ids,
)
from offline_judge.backends.slots import SlotTable
from offline_judge.domain.capability import EngineFacts
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
    ThinkingMode,
    Timings,
    Usage,
)
from offline_judge.errors import (
    BackendCrashedError,
    BackendError,
    BackendResponseError,
    ContextOverflowError,
    UsageError,
)
from offline_judge.protocols import Backend, StartListener

_SMALLEST_OUTPUT = 16
_MODES: tuple[ThinkingMode, ...] = ("off", "off-constrained", "on", "on-constrained")

Respond = Callable[[Prompt, Sampling], str | None]
ReadLabels = Callable[[Prompt, Sequence[Label]], Mapping[str, float] | None]


class ScriptedBackend:
    """Answers by rule, else by a hash of the prompt; slots and their caches are simulated.

    Args:
        options: Rules, sizes and faults.
        respond: Asked before the rules; None leaves the answer to them.
        read_labels: Asked before the label rules; None leaves the masses to them.
    """

    name: ClassVar[str] = "scripted"

    def __init__(
        self,
        options: ScriptOptions | None = None,
        *,
        respond: Respond | None = None,
        read_labels: ReadLabels | None = None,
    ) -> None:
        self.options = options or ScriptOptions()
        self.version = "1"
        self.start_s = 0.0
        self.restarts = 0
        self.prompt_rate = 0.0
        self.generate_rate = 0.0
        self.calls = 0
        self.prompts: list[Prompt] = []
        self._respond = respond
        self._read_labels = read_labels
        self._slots = SlotTable(self.options.slots)
        self._cached: dict[int, Tokens] = {}
        self._given: Counter[tuple[int, Message]] = Counter()
        self._used: Counter[int] = Counter()
        self._listener: StartListener | None = None

    @property
    def capabilities(self) -> Capabilities:
        """All of them, but for those the script leaves out."""
        return Capabilities(
            window=self.options.window,
            slots=self.options.slots,
            token_level=self.options.token_level,
            label_probabilities=self.options.label_probabilities,
            constraints=("json_schema",) if self.options.constrains else (),
            thinking_switch=self.options.thinks,
            thinking_modes=_MODES if self.options.thinks else _MODES[:2],
        )

    @property
    def facts(self) -> EngineFacts:
        """Its version."""
        return EngineFacts(version=self.version)

    async def start(self, listener: StartListener) -> None:
        """Ready at once."""
        self._listener = listener
        for phase in ("spawn", "load", "ready"):
            listener(phase, "scripted")

    async def close(self) -> None:
        """Nothing to end. Safe to call twice."""

    async def prepare(
        self, messages: Sequence[Message], *, thinking: bool = False, begun: str = ""
    ) -> Prompt:
        """Render messages in a plain chat template and count tokens.

        A conversation that ends with an assistant turn is left open to be continued.

        Raises:
            BackendError: a script that is not `token_level` was given a begun answer.
        """
        if begun and not self.options.token_level:
            raise BackendError("The script cannot go on with an answer that is begun.")
        thinking = thinking and self.options.thinks
        turns = [f"<|{turn.role}|>\n{turn.content}<|end|>\n" for turn in messages]
        text = "".join(turns)
        if messages and messages[-1].role == "assistant":
            text = text.removesuffix("<|end|>\n")
        else:
            text += "<|assistant|>\n"
            if self.options.thinks:
                text += "<think>\n" if thinking else "<think>\n\n</think>\n\n"
        text += begun
        ids = token_ids(text)
        return Prompt(
            messages=tuple(messages), text=text, token_ids=ids, tokens=len(ids), thinking=thinking
        )

    async def generate(
        self,
        prompt: Prompt,
        sampling: Sampling,
        constraint: Constraint | None = None,
        *,
        affinity: str = "",
    ) -> AsyncIterator[Delta | Generation]:
        """Stream the scripted answer token by token, then its `Generation`.

        Raises:
            ContextOverflowError: prompt and output do not fit one slot.
            BackendCrashedError: a fault of the script.
        """
        room = self._room(prompt, min(sampling.max_tokens, _SMALLEST_OUTPUT))
        slot = await self._slots.acquire(affinity)
        try:
            fault = await self._begin(prompt)
            cached = self._cache(slot, prompt)
            yield Delta(prompt_read=cached)
            await self._work(prompt.tokens - cached, self.options.read_latency_s)
            yield Delta(prompt_read=prompt.tokens)
            text = self._text(prompt, sampling, constraint)
            if fault == "unconstrained":
                text = default_text(prompt.text)
            said, reason = _cut(text, min(sampling.max_tokens, room), sampling.stop)
            if fault == "truncated":
                said, reason = said[: len(said) // 2], FinishReason.LENGTH
            for piece in said:
                await self._work(1, self.options.latency_s)
                yield Delta(text=piece)
            ids = token_ids("".join(said))
            self._cached[slot] = prompt.token_ids + ids
        finally:
            self._slots.release(slot)
        yield Generation(
            text="".join(said),
            token_ids=ids,
            finish_reason=reason,
            usage=Usage(
                prompt_tokens=prompt.tokens, cached_tokens=cached, completion_tokens=len(said)
            ),
            timings=self._timings(prompt.tokens - cached, len(said)),
        )

    async def label_probabilities(
        self, prompt: Prompt, labels: Sequence[Label], *, affinity: str = ""
    ) -> Labels:
        """Masses by label rule, else by a hash of the prompt.

        Raises:
            SchemaError: two labels share a first token.
            ContextOverflowError: prompt and label do not fit one slot.
            BackendCrashedError: a fault of the script.
        """
        variants = {text: token_ids(text) for label in labels for text in label.variants()}
        plan = plan_labels(labels, variants)
        self._room(prompt, plan.longest)
        slot = await self._slots.acquire(affinity)
        try:
            await self._begin(prompt)
            cached = self._cache(slot, prompt)
            await self._work(prompt.tokens - cached, self.options.read_latency_s)
            self._cached[slot] = prompt.token_ids
        finally:
            self._slots.release(slot)
        masses = self._masses(prompt, labels)
        return Labels(
            masses=masses,
            outside=max(0.0, 1.0 - sum(masses.values())),
            usage=Usage(
                prompt_tokens=prompt.tokens,
                cached_tokens=cached,
                completion_tokens=sum(len(all_[0]) for all_ in plan.spellings.values())
                - len(labels)
                + 1,
            ),
            timings=self._timings(prompt.tokens - cached, 0),
        )

    def _room(self, prompt: Prompt, least: int) -> int:
        room = self.options.window - prompt.tokens
        if room < least:
            raise ContextOverflowError(
                f"The prompt has {prompt.tokens} tokens and a slot holds {self.options.window}"
            )
        return room

    async def _begin(self, prompt: Prompt) -> str:
        """Count the call; gives the fault that shapes its answer, or raises or hangs."""
        call, self.calls = self.calls, self.calls + 1
        self.prompts.append(prompt)
        fault = self._fault(prompt, call)
        if fault == "crash":
            self._cached.clear()
            self.restarts += 1
            if self._listener is not None:
                self._listener("restart", "scripted crash")
            raise BackendCrashedError(f"Scripted crash at call {call}")
        if fault == "hang":
            await asyncio.Event().wait()
        return fault

    def _fault(self, prompt: Prompt, call: int) -> str:
        for at, fault in enumerate(self.options.faults):
            if self._due(at, fault, call) and fault.applies(prompt.messages):
                self._used[at] += 1
                return fault.kind
        return ""

    def _due(self, at: int, fault: Fault, call: int) -> bool:
        left = not fault.times or self._used[at] < fault.times
        return left and fault.call in (None, call)

    def _cache(self, slot: int, prompt: Prompt) -> int:
        """Tokens of the prompt that the slot holds already; the last is always read anew."""
        common = 0
        for had, wanted in zip(self._cached.get(slot, ()), prompt.token_ids, strict=False):
            if had != wanted:
                break
            common += 1
        return max(0, min(common, prompt.tokens - 1))

    def _text(self, prompt: Prompt, sampling: Sampling, constraint: Constraint | None) -> str:
        if prompt.thinking and not prompt.text.rstrip().endswith("</think>"):
            thought = default_text(f"thought/{prompt.text}")
            return f"{thought}\n</think>\n\n{self._final(prompt, sampling, constraint)}"
        return self._final(prompt, sampling, constraint)

    def _final(self, prompt: Prompt, sampling: Sampling, constraint: Constraint | None) -> str:
        scripted = self._respond(prompt, sampling) if self._respond else None
        if scripted is not None:
            return scripted
        for at, rule in enumerate(self.options.rules):
            if rule.applies(prompt.messages):
                turns = [turn for turn in prompt.messages if turn.role == "user"]
                key = (at, turns[0])
                nth = min(self._given[key], len(rule.answers) - 1)
                self._given[key] += 1
                return rule.answers[nth]
        drawn = f"{sampling.seed}/" if sampling.temperature > 0 else ""
        if constraint is not None:
            try:
                return default_json(constraint.json_schema, drawn + prompt.text)
            except UsageError as error:
                raise BackendResponseError(f"The script refused: {error.message}") from error
        return default_text(drawn + prompt.text)

    def _masses(self, prompt: Prompt, labels: Sequence[Label]) -> dict[str, float]:
        scripted = self._read_labels(prompt, labels) if self._read_labels else None
        if scripted is None:
            rules = self.options.label_rules
            scripted = next((rule.masses for rule in rules if rule.applies(prompt.messages)), None)
        if scripted is None:
            return default_masses(labels, prompt.text)
        return {label.name: float(scripted.get(label.name, 0.0)) for label in labels}

    async def _work(self, tokens: int, seconds: float) -> None:
        if seconds > 0:
            await asyncio.sleep(tokens * seconds)

    def _timings(self, read: int, generated: int) -> Timings:
        return Timings(
            prompt_s=read * self.options.read_latency_s,
            generate_s=generated * self.options.latency_s,
        )


def _cut(text: str, max_tokens: int, stop: Sequence[str]) -> tuple[list[str], FinishReason]:
    """The tokens that are said, and why they end."""
    ends = [text.index(mark) for mark in stop if mark in text]
    said = pieces(text[: min(ends)] if ends else text)
    if len(said) > max_tokens:
        return said[:max_tokens], FinishReason.LENGTH
    return said, FinishReason.STOP


BACKEND: type[Backend] = ScriptedBackend
