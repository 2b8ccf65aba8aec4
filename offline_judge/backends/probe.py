"""Tries at start what an engine promises: constraint, seed, and answers that do not mix."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

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
_CROSS_TALK = ("apple", "river")

WordPrompt = Callable[[str], Awaitable[Prompt]]


async def tried(backend: Backend, words: WordPrompt) -> Capabilities:
    """The backend's capabilities, without those it does not show when tried.

    Args:
        backend: Started.
        words: Makes a prompt of bare text.

    Raises:
        BackendStartError: one request's answer contains another's.
    """
    told = backend.capabilities
    prompt = await backend.prepare([Message(role="user", content="Say a word.")])
    if told.slots > 1:
        heads = [await words(f"{word} " * 8) for word in _CROSS_TALK]
        await check_cross_talk(backend, heads)
    return told.model_copy(
        update={
            "constraints": told.constraints if await _obeys(backend, prompt) else (),
            "seed": await _repeats(backend, prompt),
            "thinking_switch": await _has_switch(backend),
        }
    )


async def check_cross_talk(backend: Backend, prompts: Sequence[Prompt]) -> None:
    """Let two slots say two different words over and over at once; neither may say the other's.

    Raises:
        BackendStartError: with what was seen.
    """
    sampling = Sampling(max_tokens=6)
    texts = await asyncio.gather(
        *(
            answer(backend, prompt, sampling, affinity=f"probe/{at}")
            for at, prompt in enumerate(prompts)
        )
    )
    for at, text in enumerate(texts):
        if _CROSS_TALK[1 - at] in text:
            raise BackendStartError(
                "The engine mixes up the answers of two requests:"
                f" asked to repeat `{_CROSS_TALK[at]}`, it said {text!r}"
            )


async def answer(
    backend: Backend,
    prompt: Prompt,
    sampling: Sampling,
    constraint: Constraint | None = None,
    *,
    affinity: str = "probe/0",
) -> str:
    """The text of one whole generation."""
    async for item in backend.generate(prompt, sampling, constraint, affinity=affinity):
        if isinstance(item, Generation):
            return item.text
    return ""


async def _obeys(backend: Backend, prompt: Prompt) -> bool:
    """The server answers 200 with free text where it does not understand a schema."""
    sampling = Sampling(max_tokens=24)
    text = await answer(backend, prompt, sampling, Constraint(json_schema=_SCHEMA))
    return text == f'"{_ODD_WORD}"'


async def _repeats(backend: Backend, prompt: Prompt) -> bool:
    sampling = Sampling(temperature=1.5, seed=7, max_tokens=6)
    return await answer(backend, prompt, sampling) == await answer(backend, prompt, sampling)


async def _has_switch(backend: Backend) -> bool:
    messages = [Message(role="user", content="Say a word.")]
    on, off = [await backend.prepare(messages, thinking=thinking) for thinking in (True, False)]
    return on.token_ids != off.token_ids
