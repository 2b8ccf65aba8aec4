"""Tries what an engine promises: constraint, seed, labels, thinking, answers that do not mix."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing

from offline_judge.domain.judgment import UnscoredReason
from offline_judge.domain.message import (
    Capabilities,
    Constraint,
    Generation,
    Label,
    Message,
    Prompt,
    Sampling,
    ThinkingMode,
)
from offline_judge.errors import (
    BackendResponseError,
    BackendStartError,
    UnscoredError,
)
from offline_judge.prompting.thinking import (
    MARKS,
    closed_thought,
    split_thinking,
    thinks_in,
)
from offline_judge.protocols import Backend

# A word that no model says by itself, so that only an obeyed constraint brings it out.
_ODD_WORD = "zyxquor"
_SCHEMA = {"type": "string", "enum": [_ODD_WORD]}
_REPEATED_WORDS = ("walrus", "lantern")
_CERTAIN = 1e-9
_THOUGHT_TOKENS = 160
_FEW = 16
_WORD = [Message(role="user", content="Say a word.")]
_YES_NO = (Label(name="true", text="Yes"), Label(name="false", text="No"))
REPEATED = Sampling(max_tokens=6)


async def tried(backend: Backend, *, thinking: bool = False) -> Capabilities:
    """The backend's capabilities, without those it does not show when tried.

    Args:
        backend: Started, with capabilities as it tells them.
        thinking: Whether the combinations with thinking are tried, too, which takes longer.
    """
    told = backend.capabilities
    prompt = await backend.prepare(_WORD)
    obeys = await _obeys(backend, prompt)
    switch = told.thinking_switch or await _has_switch(backend)
    modes: tuple[ThinkingMode, ...] = ()
    if not await _thinks(backend, prompt):
        modes = ("off", "off-constrained") if obeys else ("off",)
    if switch and thinking:
        modes += await _modes_of_thinking(backend)
    return told.model_copy(
        update={
            "constraints": told.constraints if obeys else (),
            "seed": await _repeats(backend, prompt),
            "label_probabilities": told.label_probabilities and await _names_labels(backend),
            "thinking_switch": switch,
            "thinking_modes": modes,
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


async def answered(
    backend: Backend,
    prompt: Prompt,
    sampling: Sampling,
    constraint: Constraint | None = None,
    *,
    affinity: str = "probe",
) -> Generation:
    """One whole answer.

    Raises:
        BackendResponseError: the stream had no end.
    """
    stream = backend.generate(prompt, sampling, constraint, affinity=affinity)
    async with aclosing(stream) as items:  # type: ignore[type-var]  # generators behind the Protocol
        async for item in items:
            if isinstance(item, Generation):
                return item
    raise BackendResponseError("The answer's stream ended without its last part")


async def _obeys(backend: Backend, prompt: Prompt) -> bool:
    """The server answers 200 with free text where it does not understand a schema."""
    if not backend.capabilities.constraints:
        return False
    try:
        found = await answered(
            backend, prompt, Sampling(max_tokens=24), Constraint(json_schema=_SCHEMA)
        )
        return split_thinking(found.text)[1] == f'"{_ODD_WORD}"'
    except (BackendResponseError, UnscoredError):
        return False


async def _thinks(backend: Backend, prompt: Prompt) -> bool:
    """It thinks though it was told not to, or cannot be told."""
    found = await answered(backend, prompt, Sampling(max_tokens=_FEW))
    try:
        return bool(split_thinking(found.text)[0])
    except UnscoredError:
        return True


async def _repeats(backend: Backend, prompt: Prompt) -> bool:
    sampling = Sampling(temperature=1.5, seed=7, max_tokens=6)
    one, two = [(await answered(backend, prompt, sampling)).text for _ in range(2)]
    return one == two


async def _has_switch(backend: Backend) -> bool:
    on, off = [await backend.prepare(_WORD, thinking=thinking) for thinking in (True, False)]
    return on.token_ids != off.token_ids


async def _names_labels(backend: Backend) -> bool:
    """Alternatives come, and from before the sampling: after it one token has all of the mass.

    A whole distribution is never itemised, so something must be left unseen.
    """
    asked = [Message(role="user", content="Is it raining? Answer Yes or No.")]
    try:
        found = await backend.label_probabilities(
            await backend.prepare(asked), _YES_NO, affinity="probe"
        )
    except BackendResponseError:
        return False
    return backend.capabilities.token_level or found.unseen > _CERTAIN


async def _modes_of_thinking(backend: Backend) -> tuple[ThinkingMode, ...]:
    """Which of free and constrained answers come behind thinking, with something thought."""
    modes: list[ThinkingMode] = []
    ways: tuple[tuple[ThinkingMode, Constraint | None], ...] = (
        ("on", None),
        ("on-constrained", Constraint(json_schema=_SCHEMA)),
    )
    for mode, constraint in ways:
        try:
            thought, final = await _thought(backend, constraint)
        except (UnscoredError, BackendResponseError):
            continue
        right = bool(final) if constraint is None else final == f'"{_ODD_WORD}"'
        if thought and right:
            modes.append(mode)
    return tuple(modes)


async def _thought(backend: Backend, constraint: Constraint | None) -> tuple[str, str]:
    """Thought and final answer: in two calls where the engine can go on with a begun answer."""
    prompt = await backend.prepare(_WORD, thinking=True)
    sampling = Sampling(max_tokens=_THOUGHT_TOKENS)
    if not backend.capabilities.token_level:
        return split_thinking((await answered(backend, prompt, sampling, constraint)).text)
    closings = tuple(marks.closing for marks in MARKS)
    found = await answered(backend, prompt, sampling.model_copy(update={"stop": closings}))
    marks = thinks_in(prompt.text, found.text)
    if marks is None:
        raise UnscoredError(UnscoredReason.EMPTY, "nothing was thought")
    begun = closed_thought(found.text, marks)
    behind = await backend.prepare(_WORD, thinking=True, begun=begun)
    final = await answered(backend, behind, Sampling(max_tokens=24), constraint)
    return found.text.replace(marks.opening, "").strip(), final.text.strip()
