"""Label masses from the alternatives an engine names for one token."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from offline_judge.domain.message import Label, Labels, Timings, Usage
from offline_judge.errors import BackendResponseError, SchemaError

# A spelling whose first token has less mass than this cannot matter and is not read further.
NEGLIGIBLE = 1e-4
_TOLERANCE = 1e-3

Tokens = tuple[int, ...]


@dataclass(frozen=True)
class LabelPlan:
    """The token sequences that count for each label, by its name."""

    spellings: Mapping[str, tuple[Tokens, ...]]

    @property
    def longest(self) -> int:
        """Tokens of the longest sequence."""
        return max(len(tokens) for all_ in self.spellings.values() for tokens in all_)


def check_labels(labels: Sequence[Label]) -> None:
    """Check that labels can be told apart by their names.

    Raises:
        SchemaError: fewer than two labels, or a name twice.
    """
    names = [label.name for label in labels]
    if len(names) < 2 or len(set(names)) < len(names):
        raise SchemaError(f"Labels must be two or more with distinct names, not {names}")


def plan_labels(labels: Sequence[Label], tokens_of: Mapping[str, Tokens]) -> LabelPlan:
    """Choose the spellings to sum: those of one token, or for a label without any, all of them.

    Args:
        labels: At least two, with distinct names.
        tokens_of: Token ids of every variant of every label.

    Raises:
        SchemaError: fewer than two labels, a name twice, or two labels that share a first token.
    """
    check_labels(labels)
    spellings = {label.name: _spellings(label, tokens_of) for label in labels}
    owner: dict[int, str] = {}
    for name, sequences in spellings.items():
        for tokens in sequences:
            other = owner.setdefault(tokens[0], name)
            if other != name:
                raise SchemaError(
                    f"Labels `{other}` and `{name}` share a first token, so that no reading of it"
                    " tells them apart",
                    remedy="Choose labels that begin differently.",
                )
    return LabelPlan(spellings)


def _spellings(label: Label, tokens_of: Mapping[str, Tokens]) -> tuple[Tokens, ...]:
    variants = [tokens_of[variant] for variant in label.variants() if tokens_of[variant]]
    single = tuple(dict.fromkeys(tokens for tokens in variants if len(tokens) == 1))
    if single:
        return single
    plain, spaced = tokens_of[label.text], tokens_of[f" {label.text}"]
    if not plain:
        raise SchemaError(f"Label `{label.name}` has no text")
    # A space that is a token of its own would begin every label's spaced spelling.
    return (plain,) if spaced[1:] == plain or not spaced else (plain, spaced)


@dataclass(frozen=True)
class Alternatives:
    """One token's distribution as far as the engine itemises it."""

    masses: Mapping[int, float]
    unseen: float

    @staticmethod
    def parse(items: Iterable[Mapping[str, Any]]) -> Alternatives:
        """Read `top_logprobs`.

        Raises:
            BackendResponseError: these are no probabilities of one distribution.
        """
        try:
            masses = {int(item["id"]): math.exp(float(item["logprob"])) for item in items}
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise BackendResponseError(f"Unreadable alternatives: {error!r}") from error
        total = sum(masses.values())
        if not masses or not math.isfinite(total) or total > 1 + _TOLERANCE:
            raise BackendResponseError(f"Alternatives sum to {total}, which no distribution does")
        return Alternatives(masses, max(0.0, 1.0 - total))


@dataclass
class MassCount:
    """Sums the masses of one reading's labels."""

    masses: dict[str, float] = field(default_factory=dict)
    unseen: float = 0.0

    def add(self, name: str, mass: float) -> None:
        """Count mass for a label."""
        self.masses[name] = self.masses.get(name, 0.0) + mass

    def settle(self) -> tuple[dict[str, float], float]:
        """The masses and what lies outside them; together they are 1.

        Raises:
            BackendResponseError: the labels alone have more than all mass.
        """
        inside = sum(self.masses.values())
        if inside > 1 + _TOLERANCE:
            raise BackendResponseError(f"Label masses sum to {inside}")
        scale = 1 / inside if inside > 1 else 1.0
        masses = {name: mass * scale for name, mass in self.masses.items()}
        return masses, max(0.0, 1.0 - sum(masses.values()))

    def read(self, usage: Usage, timings: Timings) -> Labels:
        """The reading, settled.

        Raises:
            BackendResponseError: as `settle`.
        """
        masses, outside = self.settle()
        unseen = min(self.unseen, outside)
        return Labels(masses=masses, outside=outside, unseen=unseen, usage=usage, timings=timings)


class LabelTokens:
    """Token ids of labels' spellings, each asked for once.

    Args:
        tokenize: Gives the ids of a text that continues another.
    """

    def __init__(self, tokenize: Callable[[str], Awaitable[Tokens]]) -> None:
        self._tokenize = tokenize
        self._known: dict[str, Tokens] = {}

    async def plan(self, labels: Sequence[Label]) -> LabelPlan:
        """The spellings of labels to sum.

        Raises:
            SchemaError: as `plan_labels`.
        """
        for label in labels:
            for variant in label.variants():
                if variant not in self._known:
                    self._known[variant] = await self._tokenize(variant)
        return plan_labels(labels, self._known)


async def count_masses(
    plan: LabelPlan, first: Alternatives, further: Callable[[Tokens], Awaitable[Alternatives]]
) -> tuple[MassCount, int]:
    """Sum each label's spellings, reading further tokens where a spelling has several.

    Args:
        plan: What to sum.
        first: The distribution right behind the prompt.
        further: Gives that behind the prompt and some forced tokens.

    Returns:
        The count, and how many distributions were read for it.
    """
    count, steps = MassCount(unseen=first.unseen), 1
    for name, spellings in plan.spellings.items():
        for tokens in spellings:
            mass = first.masses.get(tokens[0], 0.0)
            for at in range(1, len(tokens)):
                if mass < NEGLIGIBLE:
                    mass = 0.0
                    break
                behind = await further(tokens[:at])
                count.unseen += mass * behind.unseen
                mass *= behind.masses.get(tokens[at], 0.0)
                steps += 1
            count.add(name, mass)
    return count, steps
