"""Owns the split of a model's output into its thinking and its final channel."""

from __future__ import annotations

from typing import NamedTuple

from offline_judge.domain.judgment import UnscoredReason
from offline_judge.errors import UnscoredError


class Marks(NamedTuple):
    """What a family of models puts around its thinking."""

    opening: str
    closing: str


MARKS = (Marks("<think>", "</think>"), Marks("[THINK]", "[/THINK]"))


def thinks_in(prompt: str, said: str) -> Marks | None:
    """The marks around a thought: some templates open the block, some models do; None for none."""
    opened = next((m for m in MARKS if prompt.rstrip().endswith(m.opening)), None)
    return opened or next((m for m in MARKS if said.lstrip().startswith(m.opening)), None)


def closed_thought(said: str, marks: Marks) -> str:
    """The beginning of an answer that has thought: what was said, closed, and room for the rest."""
    return f"{said.rstrip()}\n{marks.closing}\n\n"


def split_thinking(text: str) -> tuple[str, str]:
    """Split raw output into (thinking, final); only the final channel may ever be parsed.

    The final channel is what stands behind the last closing mark, whether or not an opening
    mark was seen: some models start inside the block. Thinking may quote verdicts and marks.

    Raises:
        UnscoredError: truncated, where a block was opened and never closed.
    """
    thinking, final = "", text
    for opening, closing in MARKS:
        before, found, after = final.rpartition(closing)
        if found:
            thinking += before.strip().removeprefix(opening).strip()
            final = after
        if final.lstrip().startswith(opening):
            raise UnscoredError(UnscoredReason.TRUNCATED, f"the thinking block has no {closing}")
    return thinking, final.strip()
