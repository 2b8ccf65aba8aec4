"""One answer of an OpenAI-style completion, built up from the events of its stream."""

from __future__ import annotations

import time
from typing import Any

from offline_judge.backends.runaway import Runaway
from offline_judge.domain.message import (
    Delta,
    FinishReason,
    Generation,
    Prompt,
    Timings,
    Usage,
)
from offline_judge.errors import BackendResponseError

_FINISH = {
    "stop": FinishReason.STOP,
    "length": FinishReason.LENGTH,
    "abort": FinishReason.CANCELLED,
    "cancelled": FinishReason.CANCELLED,
}


class CompletionStream:
    """Takes in events, tells deltas, and ends as a `Generation`.

    Times are taken here, because such servers tell none: until the first token, and from it on.

    Args:
        prompt: What is answered.
    """

    def __init__(self, prompt: Prompt) -> None:
        self._prompt = prompt
        self._begun = time.monotonic()
        self._first: float | None = None
        self._last = self._begun
        self._texts: list[str] = []
        self._ids: list[int] = []
        self._usage: Usage | None = None
        self._finish = ""
        self._watch = Runaway()
        self._thoughts: list[str] = []
        self.alternatives: dict[str, float] = {}
        self.runaway = False

    def take(self, event: dict[str, Any]) -> Delta | None:
        """Take in one event; gives what a watcher is told of it.

        `runaway` is set once the answer has stopped saying anything.
        """
        if event.get("usage"):
            self._usage = self.usage_of(event)
        choices = event.get("choices") or []
        if not choices:
            return None
        choice = choices[0]
        self._finish = str(choice.get("finish_reason") or self._finish)
        self._take_alternatives(choice)
        text, ids = self._said(choice)
        if text or ids:
            self._last = time.monotonic()
            self._first = self._first or self._last
        self._texts.append(text)
        self._ids.extend(ids)
        if not self._finish:
            self.runaway = self._watch.feed(text, ids)
        return Delta(text=text) if text else None

    def generation(self) -> Generation:
        """The finished answer. One that ran away counts as cut off by its length.

        Raises:
            BackendResponseError: the stream ended without saying why, or without its counts.
        """
        if self.runaway:
            finish = FinishReason.LENGTH
        elif not self._finish:
            raise BackendResponseError("The stream ended without a reason to stop")
        else:
            finish = self._reason()
        thoughts = "".join(self._thoughts)
        return Generation(
            # Thoughts that the server told apart are split off where all others are.
            text=(f"<think>{thoughts}</think>" if thoughts else "") + "".join(self._texts),
            token_ids=tuple(self._ids),
            finish_reason=finish,
            usage=self._usage or self._counted(),
            timings=Timings(
                prompt_s=(self._first or self._last) - self._begun,
                generate_s=self._last - (self._first or self._last),
            ),
        )

    @staticmethod
    def usage_of(answer: dict[str, Any]) -> Usage:
        """Token counts as the server reports them.

        Raises:
            BackendResponseError: it reports none.
        """
        found = answer.get("usage") or {}
        try:
            details = found.get("prompt_tokens_details") or {}
            return Usage(
                prompt_tokens=int(found["prompt_tokens"]),
                cached_tokens=int(details.get("cached_tokens") or 0),
                completion_tokens=int(found.get("completion_tokens") or 0),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise BackendResponseError(f"The answer has no token counts: {error!r}") from error

    def _said(self, choice: dict[str, Any]) -> tuple[str, list[int]]:
        """Text and token ids of one event; thoughts told apart are kept apart."""
        delta = choice.get("delta")
        if delta is None:
            ids = [int(token) for token in choice.get("token_ids") or ()]
            return str(choice.get("text") or ""), ids
        thought = delta.get("reasoning_content") or delta.get("reasoning")
        if thought:
            self._thoughts.append(str(thought))
            self._last = time.monotonic()
            self._first = self._first or self._last
        return str(delta.get("content") or ""), []

    def _take_alternatives(self, choice: dict[str, Any]) -> None:
        """Keep the likeliest texts of the first token, with their log-probabilities."""
        positions = (choice.get("logprobs") or {}).get("content") or ()
        if self.alternatives or not positions:
            return
        for one in positions[0].get("top_logprobs") or ():
            raw = one.get("bytes")
            text = bytes(raw).decode("utf-8", "replace") if raw else str(one.get("token", ""))
            known = self.alternatives.get(text, float("-inf"))
            self.alternatives[text] = max(known, float(one["logprob"]))

    def _reason(self) -> FinishReason:
        try:
            return _FINISH[self._finish]
        except KeyError:
            raise BackendResponseError(f"Unknown reason to stop: {self._finish!r}") from None

    def _counted(self) -> Usage:
        """Counts of an answer that was stopped half-way, as far as they are known."""
        return Usage(prompt_tokens=self._prompt.tokens, completion_tokens=len(self._ids))
