"""Where the time of a run goes: tokens and seconds by stage."""

from __future__ import annotations

from collections.abc import Iterable

from offline_judge.domain.base import Frozen


class StageCost(Frozen):
    """What one stage came to.

    Attributes:
        stage: As the trace names it; `verdict.rationale` is a later turn of role `verdict`.
        calls: Requests to the engine.
        reused: Answers from the completion cache, which cost nothing.
        prompt_tokens: Tokens sent.
        read_anew: Tokens of these the engine had to read.
        written: Tokens generated.
        read_s: Seconds of the engine reading prompts.
        write_s: Seconds of the engine generating.
    """

    stage: str
    calls: int = 0
    reused: int = 0
    prompt_tokens: int = 0
    read_anew: int = 0
    written: int = 0
    read_s: float = 0.0
    write_s: float = 0.0

    @property
    def seconds(self) -> float:
        """Seconds of the engine, queueing excluded."""
        return self.read_s + self.write_s

    @property
    def role(self) -> str:
        """The stage without its turn."""
        return self.stage.partition(".")[0]

    def plus(self, other: StageCost, stage: str = "") -> StageCost:
        """Both together."""
        numbers = type(self).model_fields.keys() - {"stage"}
        sums = {name: getattr(self, name) + getattr(other, name) for name in numbers}
        return type(self)(stage=stage or self.stage, **sums)


class RunCosts(Frozen):
    """What a run came to, all attempts counted.

    Attributes:
        samples: Samples that came to an end.
        stages: One entry a stage, in the order they first occur.
        searches: Searches made.
        reused_searches: Searches whose hits were known already.
        search_s: Seconds of searching.
        seconds: Time in which samples were worked on, summed over samples.
    """

    samples: int = 0
    stages: tuple[StageCost, ...] = ()
    searches: int = 0
    reused_searches: int = 0
    search_s: float = 0.0
    seconds: float = 0.0

    @property
    def total(self) -> StageCost:
        """All stages together."""
        return add_up(self.stages, "total")

    @property
    def rest_s(self) -> float:
        """Seconds in neither engine nor search; 0 where requests overlapped and hide it."""
        return max(0.0, self.seconds - self.search_s - self.total.seconds)

    def roles(self) -> tuple[StageCost, ...]:
        """One entry a role, its turns together."""
        names = dict.fromkeys(stage.role for stage in self.stages)
        return tuple(
            add_up((stage for stage in self.stages if stage.role == name), name) for name in names
        )


def add_up(costs: Iterable[StageCost], name: str) -> StageCost:
    """All of them under one name."""
    found = StageCost(stage=name)
    for cost in costs:
        found = found.plus(cost)
    return found
