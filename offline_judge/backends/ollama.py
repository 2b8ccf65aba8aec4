"""Ollama in its own dialect, which alone lets the window be set."""

from __future__ import annotations

from typing import Any, ClassVar

from offline_judge.backends.chat import ALTERNATIVES, ChatBackend, Told
from offline_judge.backends.openai_stream import CompletionStream
from offline_judge.backends.wire import Framing
from offline_judge.domain.message import (
    Constraint,
    Delta,
    Generation,
    Prompt,
    Sampling,
    Timings,
    Usage,
)
from offline_judge.errors import BackendResponseError, BackendStartError
from offline_judge.protocols import Backend

_NANO = 1e-9
_KEEP_ALIVE = "30m"
_NOT_FOUND = 404


class OllamaBackend(ChatBackend):
    """It drops the front of a prompt that its window does not hold, and says so only in counts."""

    name: ClassVar[str] = "ollama"
    product: ClassVar[str] = "Ollama"
    paths: ClassVar[tuple[str, ...]] = ("/api/version",)
    chat_path: ClassVar[str] = "/api/chat"
    framing: ClassVar[Framing] = "lines"

    async def describe(self) -> Told:
        """The model's longest context, and whether it can think.

        Raises:
            BackendStartError: it has no such model.
        """
        wire = await self.engine.wire()
        try:
            shown = await wire.post("/api/show", {"model": self._model})
        except BackendResponseError as error:
            if error.status != _NOT_FOUND:
                raise
            raise BackendStartError(
                f"Ollama at {self.options.base_url} has no model `{self._model}`.",
                remedy=f"Fetch it there: ollama pull {self._model}",
            ) from error
        details = shown.get("model_info") or {}
        window = next(
            (int(value) for key, value in details.items() if key.endswith(".context_length")), 0
        )
        thinking = "thinking" in (shown.get("capabilities") or ())
        return Told(window=window, thinking=thinking)

    def body(
        self, prompt: Prompt, sampling: Sampling, constraint: Constraint | None
    ) -> dict[str, Any]:
        """A chat request with the same window every time: another one reloads the model."""
        body: dict[str, Any] = {
            "model": self._model,
            "messages": [turn.model_dump() for turn in prompt.messages],
            "stream": True,
            "keep_alive": _KEEP_ALIVE,
            # Newer releases then refuse what does not fit, older ones know neither.
            "truncate": False,
            "shift": False,
            "options": {
                "num_ctx": self.capabilities.window,
                "num_predict": sampling.max_tokens,
                "temperature": sampling.temperature,
                "top_p": sampling.top_p,
                "top_k": 0,
                "min_p": 0.0,
                "repeat_penalty": 1.0,
                "seed": sampling.seed % 2**31,
                "stop": list(sampling.stop),
            },
        }
        if self._can_think:
            body["think"] = prompt.thinking
        if constraint is not None:
            body["format"] = constraint.json_schema
        return body

    def with_alternatives(self, body: dict[str, Any]) -> dict[str, Any]:
        """The request, asking for the likeliest tokens, too."""
        return body | {"logprobs": True, "top_logprobs": ALTERNATIVES}

    def answer(self, prompt: Prompt) -> CompletionStream:
        """What takes in the lines of an answer."""
        return OllamaStream(prompt)


class OllamaStream(CompletionStream):
    """The lines of Ollama's chat, which tell the engine's own times."""

    _final: dict[str, Any] | None = None

    def take(self, event: dict[str, Any]) -> Delta | None:
        """Take in one line."""
        if event.get("done"):
            self._final = event
        message = event.get("message") or {}
        choice: dict[str, Any] = {
            "delta": {
                "content": message.get("content"),
                "reasoning_content": message.get("thinking"),
            },
            "logprobs": {"content": event.get("logprobs")},
        }
        if event.get("done"):
            choice["finish_reason"] = event.get("done_reason") or "stop"
        return super().take({"choices": [choice]})

    def generation(self) -> Generation:
        """The finished answer, with the counts and times of its last line.

        Raises:
            BackendResponseError: there was no last line.
        """
        found = super().generation()
        final = self._final
        if final is None:
            return found
        usage = Usage(
            prompt_tokens=int(final.get("prompt_eval_count") or 0),
            completion_tokens=int(final.get("eval_count") or 0),
        )
        timings = Timings(
            prompt_s=float(final.get("prompt_eval_duration") or 0) * _NANO,
            generate_s=float(final.get("eval_duration") or 0) * _NANO,
        )
        return found.model_copy(update={"usage": usage, "timings": timings})


BACKEND: type[Backend] = OllamaBackend
