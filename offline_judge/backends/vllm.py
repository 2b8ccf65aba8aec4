"""vLLM on the level of tokens: a managed child, or a server that already runs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from typing import Any, ClassVar

from offline_judge.backends import probe
from offline_judge.backends.engine import Engine
from offline_judge.backends.labels import Alternatives, LabelTokens, Tokens, count_masses
from offline_judge.backends.launch_vllm import MOST_ALTERNATIVES, VllmLauncher, adapter_name
from offline_judge.backends.openai_stream import CompletionStream
from offline_judge.backends.options import EngineOptions
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
    Timings,
    Usage,
    without_system,
)
from offline_judge.errors import (
    BackendCrashedError,
    BackendResponseError,
    BackendStartError,
    ContextOverflowError,
)
from offline_judge.protocols import Backend

# What a server of somebody else's gives where it was not told to give more.
_FEW_ALTERNATIVES = 20
_LONG_PROMPT = "maximum context length"


class VllmBackend(TriedBackend):
    """Prompts as token ids; prefixes are cached by the server, whichever request has them."""

    name: ClassVar[str] = "vllm"

    def __init__(self, options: EngineOptions, engine: Serving | None = None) -> None:
        super().__init__(engine or Engine(options, VllmLauncher()))
        self._model = options.served_as or options.model_name
        if options.adapter is not None:
            self._model = adapter_name(options.adapter)
        self._slots = asyncio.Semaphore(options.slots)
        self._alternatives = MOST_ALTERNATIVES
        self._labels = LabelTokens(self._tokens)

    async def told(self) -> Capabilities:
        """The model's entry in the list of models.

        Raises:
            BackendStartError: the list has no such model.
        """
        wire = await self.engine.wire()
        listed = (await wire.get("/v1/models"))["data"]
        found = next((entry for entry in listed if entry["id"] == self._model), None)
        if found is None:
            names = ", ".join(str(entry["id"]) for entry in listed) or "none"
            raise BackendStartError(
                f"The vLLM server has no model `{self._model}`; it serves: {names}",
                remedy="Name one of them: --judge vllm:MODEL",
            )
        # An adapter is listed without a window; what it adapts has it.
        windows = {entry["id"]: entry.get("max_model_len") for entry in listed}
        return Capabilities(
            window=int(windows[self._model] or windows[found["parent"]]),
            slots=self.engine.options.slots,
            token_level=True,
            label_probabilities=True,
            constraints=("json_schema",),
        )

    async def repeated(self, which: int) -> str:
        """What it goes on with behind a text that says one word again and again."""
        ids = await self._tokens(probe.repetition(which))
        body = self._body(ids, probe.REPEATED.max_tokens) | {"temperature": 0.0}
        return str((await self._post("/v1/completions", body))["choices"][0]["text"])

    async def prepare(
        self, messages: Sequence[Message], *, thinking: bool = False, begun: str = ""
    ) -> Prompt:
        """Render messages with the model's chat template and count their tokens.

        A conversation that ends with an assistant turn is left open for the model to continue it.
        """
        options = self.engine.options
        turns = messages if options.system_role else without_system(messages)
        left_open = turns[-1].role == "assistant"
        body = {
            "model": self._model,
            "messages": [turn.model_dump() for turn in turns],
            "add_generation_prompt": not left_open,
            "continue_final_message": left_open,
            "chat_template_kwargs": {options.thinking_switch: thinking},
        }
        ids = tuple((await self._post("/tokenize", body))["tokens"])
        if begun:
            ids += await self._tokens(begun)
        text = (await self._post("/detokenize", {"model": self._model, "tokens": ids}))["prompt"]
        return Prompt(
            messages=tuple(messages),
            text=str(text),
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
            ContextOverflowError: prompt and output do not fit the window.
            BackendCrashedError: the engine died; it is started again for the next request.
            BackendResponseError: the engine broke its protocol.
        """
        del affinity
        least = min(sampling.max_tokens, SMALLEST_OUTPUT)
        room = room_behind(prompt, self.capabilities.window, least)
        self._mix_ups.raise_found()
        body = self._body(prompt.token_ids, min(sampling.max_tokens, room)) | {
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "seed": sampling.seed % 2**31,
            "stop": list(sampling.stop),
            "stream": True,
            "stream_options": {"include_usage": True},
            "return_token_ids": True,
        }
        if constraint is not None:
            body["structured_outputs"] = {"json": constraint.json_schema}
        async with self._slots:
            answer = CompletionStream(prompt)
            wire = await self.engine.wire()
            try:
                async with wire.stream("/v1/completions", body) as events:
                    async for event in events:
                        if delta := answer.take(event):
                            yield delta
                        if answer.runaway:
                            break
            except BackendCrashedError as error:
                raise await self.engine.crashed(error, wire) from error
            except BackendResponseError as error:
                raise _overflow(error) from error
        generation = answer.generation()
        self._check_read(prompt, generation.usage)
        self._count(generation.usage, generation.timings)
        yield generation

    async def label_probabilities(
        self, prompt: Prompt, labels: Sequence[Label], *, affinity: str = ""
    ) -> Labels:
        """Mass of each label right behind the prompt, and outside them, before any sampling.

        A label of several tokens is scored whole by forced decoding.

        Raises:
            SchemaError: two labels share a first token.
            ContextOverflowError: prompt and label do not fit the window.
        """
        del affinity
        plan = await self._labels.plan(labels)
        room_behind(prompt, self.capabilities.window, plan.longest)
        self._mix_ups.raise_found()
        begun = time.monotonic()
        async with self._slots:
            first, usage = await self._distribution(prompt.token_ids)

            async def further(forced: Tokens) -> Alternatives:
                return (await self._distribution(prompt.token_ids + forced))[0]

            count, steps = await count_masses(plan, first, further)
        self._check_read(prompt, usage)
        timings = Timings(prompt_s=time.monotonic() - begun)
        self._count(usage, timings)
        return count.read(usage.model_copy(update={"completion_tokens": steps}), timings)

    async def _distribution(self, ids: Tokens) -> tuple[Alternatives, Usage]:
        body = self._body(ids, 1) | {
            "temperature": 0.0,
            "logprobs": self._alternatives,
            "return_tokens_as_token_ids": True,
        }
        try:
            answer = await self._post("/v1/completions", body)
        except BackendResponseError as error:
            if "logprobs" not in error.message or self._alternatives == _FEW_ALTERNATIVES:
                raise
            self._alternatives = _FEW_ALTERNATIVES
            return await self._distribution(ids)
        try:
            named = answer["choices"][0]["logprobs"]["top_logprobs"][0]
            items = [
                {"id": int(token.removeprefix("token_id:")), "logprob": logprob}
                for token, logprob in named.items()
            ]
        except (KeyError, IndexError, TypeError, AttributeError, ValueError) as error:
            raise BackendResponseError("The server named no alternatives by their ids") from error
        return Alternatives.parse(items), CompletionStream.usage_of(answer)

    def _body(self, ids: Sequence[int], most: int) -> dict[str, Any]:
        return {"model": self._model, "prompt": list(ids), "max_tokens": most, "top_k": 0}

    async def _tokens(self, text: str) -> Tokens:
        body = {"model": self._model, "prompt": text, "add_special_tokens": False}
        return tuple((await self._post("/tokenize", body))["tokens"])

    async def _post(self, path: str, body: dict[str, Any]) -> Any:
        wire = await self.engine.wire()
        try:
            return await wire.post(path, body)
        except BackendCrashedError as error:
            raise await self.engine.crashed(error, wire) from error
        except BackendResponseError as error:
            raise _overflow(error) from error

    def _check_read(self, prompt: Prompt, usage: Usage) -> None:
        self.engine.succeeded()
        if usage.prompt_tokens != prompt.tokens:
            raise BackendResponseError(
                f"The engine cut the prompt: {prompt.tokens} tokens were sent and it read "
                f"{usage.prompt_tokens}"
            )


def _overflow(
    error: BackendResponseError | ContextOverflowError,
) -> BackendResponseError | ContextOverflowError:
    """The server's refusal, by its kind: it has one kind for all that is wrong with a request."""
    if _LONG_PROMPT in error.message:
        return ContextOverflowError(error.message, where=error.where)
    return error


BACKEND: type[Backend] = VllmBackend
