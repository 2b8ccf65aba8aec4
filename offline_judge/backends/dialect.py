"""llama.cpp's native request and answer fields, to and from our own types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from offline_judge.domain.message import (
    Constraint,
    FinishReason,
    Sampling,
    Timings,
    Usage,
)
from offline_judge.errors import BackendResponseError

_FINISH = {"eos": FinishReason.STOP, "word": FinishReason.STOP, "limit": FinishReason.LENGTH}


def completion_body(
    token_ids: Sequence[int],
    slot: int,
    sampling: Sampling,
    constraint: Constraint | None,
) -> dict[str, Any]:
    """The body of a `/completion` request; no field of it comes from a user's file."""
    body: dict[str, Any] = {
        "prompt": list(token_ids),
        "id_slot": slot,
        "cache_prompt": True,
        "n_predict": sampling.max_tokens,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        # The server's defaults would cut the distribution further.
        "top_k": 0,
        "min_p": 0.0,
        "seed": sampling.seed % 2**32,
        "stop": list(sampling.stop),
        "stream": True,
        # Without progress a closed stream goes unnoticed until the whole prompt is read.
        "return_progress": True,
        "return_tokens": True,
    }
    if constraint is not None:
        # Free whitespace in JSON lets a small model write blanks until its limit.
        compact = {"x-guidance": {"whitespace_flexible": False}}
        body["json_schema"] = constraint.json_schema | compact
    return body


def finish_reason(final: dict[str, Any]) -> FinishReason:
    """Why the engine stopped.

    Raises:
        BackendResponseError: for no reason that is known here.
    """
    try:
        return _FINISH[final["stop_type"]]
    except KeyError:
        kind = final.get("stop_type")
        raise BackendResponseError(f"Unknown reason to stop: {kind!r}") from None


def usage(final: dict[str, Any]) -> Usage:
    """Token counts as the engine reports them."""
    read = final.get("timings", {})
    try:
        cached, anew = int(read["cache_n"]), int(read["prompt_n"])
        generated = int(final["tokens_predicted"])
    except (KeyError, TypeError, ValueError) as error:
        raise BackendResponseError(f"The final event has no counts: {error!r}") from error
    return Usage(prompt_tokens=cached + anew, cached_tokens=cached, completion_tokens=generated)


def timings(final: dict[str, Any]) -> Timings:
    """Seconds as the engine reports them."""
    took = final.get("timings", {})
    return Timings(
        prompt_s=float(took.get("prompt_ms", 0.0)) / 1000,
        generate_s=float(took.get("predicted_ms", 0.0)) / 1000,
    )
