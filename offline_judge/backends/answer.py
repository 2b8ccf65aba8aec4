"""One answer of a llama.cpp server, built up from the events of its stream."""

from __future__ import annotations

from typing import Any

from offline_judge.backends.dialect import finish_reason, timings, usage
from offline_judge.backends.runaway import Runaway
from offline_judge.domain.message import (
    Delta,
    FinishReason,
    Generation,
    Prompt,
    Timings,
    Usage,
)


class StreamedAnswer:
    """Takes in events, tells deltas, and ends as a `Generation`.

    Args:
        prompt: What is answered.
    """

    def __init__(self, prompt: Prompt) -> None:
        self._prompt = prompt
        self._texts: list[str] = []
        self._ids: list[int] = []
        self._cached = 0
        self._watch = Runaway()
        self._final: dict[str, Any] | None = None
        self.runaway = False

    def take(self, event: dict[str, Any]) -> Delta | None:
        """Take in one event; gives what a watcher is told of it.

        `runaway` is set once the answer has stopped saying anything.
        """
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
