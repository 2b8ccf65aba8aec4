"""Owns where the time of a run goes: one pure fold over its events, by stage."""

from __future__ import annotations

from collections.abc import Iterable

from offline_judge.domain.costs import RunCosts, StageCost
from offline_judge.domain.events import AnyEvent, CallFinished, SampleFinished, SearchFinished


def call_cost(event: CallFinished) -> StageCost:
    """What one call came to."""
    if event.reused:
        return StageCost(stage=event.stage, reused=1)
    return StageCost(
        stage=event.stage,
        calls=1,
        prompt_tokens=event.usage.prompt_tokens,
        read_anew=event.usage.read_anew,
        written=event.usage.completion_tokens,
        read_s=event.timings.prompt_s,
        write_s=event.timings.generate_s,
    )


def fold_costs(events: Iterable[AnyEvent]) -> RunCosts:
    """What all events come to; their order does not matter."""
    stages: dict[str, StageCost] = {}
    searches = reused_searches = 0
    search_s = seconds = 0.0
    ended: set[str] = set()
    for event in events:
        match event:
            case CallFinished():
                cost = call_cost(event)
                known = stages.get(event.stage)
                stages[event.stage] = known.plus(cost) if known else cost
            case SearchFinished():
                searches += not event.reused
                reused_searches += event.reused
                search_s += event.seconds
            case SampleFinished():
                seconds += event.seconds
                ended.add(event.sample_id)
    return RunCosts(
        samples=len(ended),
        stages=tuple(stages.values()),
        searches=searches,
        reused_searches=reused_searches,
        search_s=search_s,
        seconds=seconds,
    )
