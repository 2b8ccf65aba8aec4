"""Any server with OpenAI's chat completions, by what it turns out to do."""

from __future__ import annotations

from typing import Any, ClassVar

from offline_judge.backends.chat import ALTERNATIVES, ChatBackend, Told
from offline_judge.domain.message import Constraint, Prompt, Sampling
from offline_judge.errors import BackendStartError
from offline_judge.protocols import Backend

_WINDOW_KEYS = ("max_model_len", "loaded_context_length", "context_length", "context_window")


class OpenAiBackend(ChatBackend):
    """The common ground of compatible servers; what they leave out is found by trying."""

    name: ClassVar[str] = "openai"
    product: ClassVar[str] = "an OpenAI-compatible server"

    async def describe(self) -> Told:
        """The model's entry in the list of models.

        Raises:
            BackendStartError: the list has no such model.
        """
        listed = await self.listed("/v1/models")
        found = self.entry(listed)
        window = next((int(found[key]) for key in _WINDOW_KEYS if found.get(key)), 0)
        # A switch that a server does not know is ignored by it, which the probe shows.
        return Told(window=window, thinking=bool(self.options.thinking_switch))

    async def listed(self, path: str) -> list[dict[str, Any]]:
        """The entries of a list of models."""
        wire = await self.engine.wire()
        answer = await wire.get(path)
        entries = answer.get("data") if isinstance(answer, dict) else None
        return [entry for entry in entries or () if isinstance(entry, dict)]

    def entry(self, listed: list[dict[str, Any]]) -> dict[str, Any]:
        """The model's entry of a list.

        Raises:
            BackendStartError: there is none.
        """
        found = next((entry for entry in listed if entry.get("id") == self._model), None)
        if found is None:
            names = ", ".join(str(entry.get("id")) for entry in listed[:8]) or "none"
            raise BackendStartError(
                f"{self.product} at {self.options.base_url} has no model `{self._model}`; "
                f"it lists: {names}",
                remedy=f"Name one of them: --judge {self.name}:MODEL",
            )
        return found

    def body(
        self, prompt: Prompt, sampling: Sampling, constraint: Constraint | None
    ) -> dict[str, Any]:
        """A chat completion, streaming, with its counts at the end."""
        body: dict[str, Any] = {
            "model": self._model,
            "messages": [turn.model_dump() for turn in prompt.messages],
            "max_tokens": sampling.max_tokens,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "seed": sampling.seed % 2**31,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if sampling.stop:
            body["stop"] = list(sampling.stop)
        if self._can_think:
            body["chat_template_kwargs"] = {self.options.thinking_switch: prompt.thinking}
        if constraint is not None:
            body["response_format"] = {
                "type": "json_schema",
                "json_schema": {
                    "name": "answer",
                    "strict": True,
                    "schema": constraint.json_schema,
                },
            }
        return body

    def with_alternatives(self, body: dict[str, Any]) -> dict[str, Any]:
        """The request, asking for the likeliest tokens, too."""
        return body | {"logprobs": True, "top_logprobs": ALTERNATIVES}


BACKEND: type[Backend] = OpenAiBackend
