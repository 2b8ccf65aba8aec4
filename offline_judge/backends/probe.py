"""Tries what an engine promises: constraint, seed, thinking switch, answers that do not mix."""

from __future__ import annotations

from collections.abc import Sequence

from offline_judge.domain.message import (
    Capabilities,
    Constraint,
    Generation,
    Message,
    Prompt,
    Sampling,
)
from offline_judge.errors import BackendStartError
from offline_judge.protocols import Backend

# A word that no model says by itself, so that only an obeyed constraint brings it out.
_ODD_WORD = "zyxquor"
_SCHEMA = {"type": "string", "enum": [_ODD_WORD]}
_REPEATED_WORDS = ("walrus", "lantern")
REPEATED = Sampling(max_tokens=6)


async def tried(backend: Backend) -> Capabilities:
    """The backend's capabilities, without those it does not show when tried."""
    told = backend.capabilities
    prompt = await backend.prepare([Message(role="user", content="Say a word.")])
    return told.model_copy(
        update={
            "constraints": told.constraints if await _obeys(backend, prompt) else (),
            "seed": await _repeats(backend, prompt),
            "thinking_switch": await _has_switch(backend),
        }
    )


def repetition(which: int) -> str:
    """A text that any model goes on with its own word; `which` is 0 or 1."""
    return "\n" + f" {_REPEATED_WORDS[which]}" * 6


def check_mix_up(texts: Sequence[str]) -> None:
    """Check what two slots went on with that were given the two texts at once.

    Raises:
        BackendStartError: one said the other's word, with what was seen.
    """
    for which, text in enumerate(texts):
        if _REPEATED_WORDS[1 - which] in text:
            raise BackendStartError(
                "The engine mixes up the answers of two requests:"
                f" asked to repeat `{_REPEATED_WORDS[which]}`, it said {text!r}",
                remedy="Nothing judged by it can be relied on.",
            )


async def _answer(
    backend: Backend, prompt: Prompt, sampling: Sampling, constraint: Constraint | None = None
) -> str:
    async for item in backend.generate(prompt, sampling, constraint, affinity="probe"):
        if isinstance(item, Generation):
            return item.text
    return ""


async def _obeys(backend: Backend, prompt: Prompt) -> bool:
    """The server answers 200 with free text where it does not understand a schema."""
    sampling = Sampling(max_tokens=24)
    text = await _answer(backend, prompt, sampling, Constraint(json_schema=_SCHEMA))
    return text == f'"{_ODD_WORD}"'


async def _repeats(backend: Backend, prompt: Prompt) -> bool:
    sampling = Sampling(temperature=1.5, seed=7, max_tokens=6)
    return await _answer(backend, prompt, sampling) == await _answer(backend, prompt, sampling)


async def _has_switch(backend: Backend) -> bool:
    messages = [Message(role="user", content="Say a word.")]
    on, off = [await backend.prepare(messages, thinking=thinking) for thinking in (True, False)]
    return on.token_ids != off.token_ids
