"""The full probe of an engine, for its record: what takes too long to be tried at every start."""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing

from offline_judge.backends import probe
from offline_judge.backends.probe import answered
from offline_judge.domain.capability import CapabilityReport, Needle
from offline_judge.domain.message import (
    Constraint,
    Delta,
    Message,
    Prompt,
    Sampling,
    Usage,
)
from offline_judge.errors import (
    BackendResponseError,
    BackendStartError,
    ContextOverflowError,
)
from offline_judge.protocols import Backend, StartListener

_SECRET = "marzipan"
_ASK = "What is the password? Answer with that one word."
_FILLER = "The road went on through fields and small towns, and nobody hurried. "
_RESERVE = 48
"""Tokens of the window that the needle's prompt leaves free."""
_LONG_ANSWER = 400
_WRITTEN = 32
_PASSAGE_WORDS = 240


async def probed(backend: Backend, listener: StartListener) -> CapabilityReport:
    """Try everything on a started engine; takes as long as it reads one full window.

    Args:
        backend: Started.
        listener: Told what is tried.

    Raises:
        BackendError: the engine died, or broke its protocol where nothing was provoked.
    """
    listener("probe", "combinations of thinking and constraint")
    capabilities = await probe.tried(backend, thinking=True)
    listener("probe", "rates, cached tokens")
    read, written, cached = await _rates(backend)
    listener("probe", "cancel, mix-ups")
    cancel_s = await _cancel(backend)
    mixed = await _mixes(backend)
    listener("probe", f"front of a full prompt ({capabilities.window} tokens)")
    needle, tokens = await _needle(backend)
    return CapabilityReport(
        engine=backend.name,
        capabilities=capabilities,
        needle=needle,
        needle_tokens=tokens,
        bad_constraint_refused=await _refuses(backend),
        cached_tokens=cached,
        cancel_s=cancel_s,
        mixed_up=mixed,
        prompt_rate=read,
        generate_rate=written,
    )


async def _refuses(backend: Backend) -> bool:
    """Whether a schema that cannot be compiled is an error."""
    broken = Constraint(json_schema={"$ref": "#/definitions/nothing"})
    prompt = await backend.prepare([Message(role="user", content="Say a word.")])
    try:
        await answered(backend, prompt, Sampling(max_tokens=4), broken)
    except BackendResponseError:
        return True
    return False


async def _rates(backend: Backend) -> tuple[float, float, int | None]:
    """Prompt tokens read and tokens written a second, and cached tokens of a repeated prompt."""
    number = min(_PASSAGE_WORDS, backend.capabilities.window // 4)
    words = " ".join(f"{_FILLER.split()[at % 12]}" for at in range(number))
    turns = [Message(role="user", content=f"{words}\n\nGo on with this text at length.")]
    prompt = await backend.prepare(turns)
    room = max(1, min(_WRITTEN, backend.capabilities.window - prompt.tokens))
    first = await answered(backend, prompt, Sampling(max_tokens=room), affinity="rates")
    again = await answered(backend, prompt, Sampling(max_tokens=1), affinity="rates")
    read = _rate(first.usage.read_anew, first.timings.prompt_s)
    written = _rate(first.usage.completion_tokens - 1, first.timings.generate_s)
    reports = backend.capabilities.reports_cached_tokens
    return read, written, again.usage.cached_tokens if reports else None


def _rate(tokens: int, seconds: float) -> float:
    return round(tokens / seconds, 2) if tokens > 0 and seconds > 0 else 0.0


async def _cancel(backend: Backend) -> float:
    """Seconds from leaving a long answer to the end of a short one on the same slot."""
    prompt = await backend.prepare([Message(role="user", content="Count as far as you can.")])
    limit = max(1, min(_LONG_ANSWER, backend.capabilities.window - prompt.tokens))
    stream = backend.generate(prompt, Sampling(max_tokens=limit), affinity="cancel")
    async with aclosing(stream) as items:  # type: ignore[type-var]  # generators behind the Protocol
        async for item in items:
            if isinstance(item, Delta) and item.text:
                break
    begun = time.monotonic()
    await answered(backend, prompt, Sampling(max_tokens=1), affinity="cancel")
    return round(time.monotonic() - begun, 2)


async def _mixes(backend: Backend) -> bool:
    if backend.capabilities.slots < 2:
        return False

    async def repeat(which: int) -> str:
        text = f"Go on in the same way:{probe.repetition(which)}"
        prompt = await backend.prepare([Message(role="user", content=text)])
        return (await answered(backend, prompt, probe.REPEATED, affinity=f"mix {which}")).text

    for _ in range(2):
        texts = await asyncio.gather(repeat(0), repeat(1))
        try:
            probe.check_mix_up(texts)
        except BackendStartError:
            return True
    return False


async def _needle(backend: Backend) -> tuple[Needle, int]:
    """Whether a word at the start of a prompt as long as the window is found again."""
    prompt = await _full_prompt(backend)
    try:
        found = await answered(backend, prompt, Sampling(max_tokens=12), affinity="needle")
    except ContextOverflowError:
        return "cut", prompt.tokens
    tokens = _read(found.usage, prompt)
    if _SECRET in found.text.lower():
        return "found", tokens
    control = await backend.prepare(_asked(1))
    told = await answered(backend, control, Sampling(max_tokens=12), affinity="needle")
    # A model that fails at a short prompt shows nothing about long ones.
    if _SECRET not in told.text.lower():
        return "unclear", tokens
    # Counted by the same tokenizer, every token was read: then it is the model that overlooks it.
    whole = backend.capabilities.token_level and found.usage.prompt_tokens == prompt.tokens
    return ("missed" if whole else "lost"), tokens


def _read(usage: Usage, prompt: Prompt) -> int:
    return usage.prompt_tokens or prompt.tokens


async def _full_prompt(backend: Backend) -> Prompt:
    """The longest prompt of this kind that the window holds."""
    aim = backend.capabilities.window - _RESERVE
    one, two = [(await backend.prepare(_asked(times))).tokens for times in (10, 20)]
    times = max(1, int((aim - one) / max(1.0, (two - one) / 10)) + 10)
    prompt = await backend.prepare(_asked(times))
    while prompt.tokens > aim and times > 1:
        times -= max(1, (prompt.tokens - aim) // max(1, (two - one) // 10))
        prompt = await backend.prepare(_asked(max(1, times)))
    return prompt


def _asked(times: int) -> list[Message]:
    text = f"The password is {_SECRET}. Remember it.\n\n{_FILLER * times}\n\n{_ASK}"
    return [Message(role="user", content=text)]
