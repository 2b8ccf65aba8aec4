"""Where the time of a run goes, as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from offline_judge.cli import output
from offline_judge.domain.numbers import count, duration

if TYPE_CHECKING:
    from offline_judge.domain.costs import RunCosts, StageCost

_COLUMNS = ("calls", "reused", "tokens sent", "read anew", "written", "reading", "writing")


def costs_document(run_id: str, costs: RunCosts) -> dict[str, Any]:
    """The costs as a JSON document, roles and total beside the stages."""
    roles, total = costs.roles(), costs.total
    return {"run": run_id, "costs": costs, "roles": roles, "total": total, "rest_s": costs.rest_s}


def show_costs(costs: RunCosts) -> None:
    """Write one line a stage, all of them together, and what is spent outside the engine."""
    columns = [output.Column("stage"), *(output.Column(name, right=True) for name in _COLUMNS)]
    columns.append(output.Column("engine s a sample", right=True))
    output.table(columns, [_cells(stage, costs) for stage in (*costs.stages, costs.total)])
    output.text()
    searches = f"{count(costs.searches, 'search', 'searches')}, {duration(costs.search_s)}"
    output.pairs(
        [
            ("samples", f"{costs.samples:,}"),
            ("time", f"{duration(costs.seconds)}, {_each(costs.seconds, costs)} s a sample"),
            ("searching", f"{searches} ({costs.reused_searches:,} more were known already)"),
            ("neither engine nor search", duration(costs.rest_s)),
        ]
    )


def _cells(cost: StageCost, costs: RunCosts) -> list[str]:
    numbers = (cost.calls, cost.reused, cost.prompt_tokens, cost.read_anew, cost.written)
    times = (duration(cost.read_s), duration(cost.write_s))
    return [cost.stage, *(f"{number:,}" for number in numbers), *times, _each(cost.seconds, costs)]


def _each(seconds: float, costs: RunCosts) -> str:
    return f"{seconds / costs.samples:.2f}" if costs.samples else "-"
