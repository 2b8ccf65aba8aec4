"""LM Studio: OpenAI's dialect, with the window read from its own list of models."""

from __future__ import annotations

from typing import ClassVar

from offline_judge.backends.chat import Told
from offline_judge.backends.openai import OpenAiBackend
from offline_judge.errors import BackendResponseError
from offline_judge.protocols import Backend


class LmStudioBackend(OpenAiBackend):
    """It names no alternatives, and may put a schema's answer into the thoughts of a thinker."""

    name: ClassVar[str] = "lmstudio"
    product: ClassVar[str] = "LM Studio"

    async def describe(self) -> Told:
        """The model's entry, with the window it is loaded with where it is.

        Raises:
            BackendStartError: the list has no such model.
        """
        try:
            listed = await self.listed("/api/v0/models")
        except BackendResponseError:
            return await super().describe()
        found = self.entry(listed)
        loaded = int(found.get("loaded_context_length") or 0)
        notes: tuple[str, ...] = ()
        if found.get("state") not in (None, "loaded") or not loaded:
            notes = (
                f"LM Studio has not loaded `{self._model}` yet and will do so with a window of "
                "its own choice.",
            )
        return Told(window=loaded, thinking=bool(self.options.thinking_switch), notes=notes)


BACKEND: type[Backend] = LmStudioBackend
