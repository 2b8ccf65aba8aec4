"""A scripted judge's answers for tests of SAGE, and judging one sample with them."""

from __future__ import annotations

import json
from typing import Any

from fake_judge import FakeJudge, FakeSearch, ListTrace

from offline_judge.domain.judgment import Judgment
from offline_judge.domain.sample import Sample
from offline_judge.methods.sage.method import Sage
from offline_judge.protocols import MethodContext, Untrusted, Values


def flat(values: dict[str, Any]) -> str:
    def text(value: Any) -> str:
        if isinstance(value, Untrusted):
            return value.text
        return " ".join(map(text, value)) if isinstance(value, tuple) else str(value)

    return " ".join(map(text, values.values()))


class Script:
    """Distinct queries, a summary that quotes passage 2, JSON rationales."""

    def __init__(
        self, *, repeat: bool = False, cites: tuple[str, ...] = ("E1",), argues: bool = True
    ) -> None:
        self.repeat, self.cites, self.argues, self.count = repeat, cites, argues, 0

    def __call__(self, template: str, values: Values) -> str:
        if template.endswith(".rationale"):
            fields: dict[str, Any] = {"rationale": "So it says.", "correct": self.argues}
            return json.dumps(fields | ({"cites": self.cites} if values["cite"] else {}))
        if template.startswith("query"):
            self.count += 1
            return "same query" if self.repeat else f"query {self.count}"
        return {"relevance.summary": "It is fact 2.", "reflection.missing": "the year"}[template]


def masses(template: str, values: Values) -> dict[str, float]:
    """Passage 2 says what the answer is, the others do not; all of them support the response."""
    if template == "relevance":
        says = 0.9 if "number 2." in flat(dict(values)) else 0.1
        return {"relevant": says, "irrelevant": 1 - says}
    return {"true": 0.6, "false": 0.2}


SAMPLE = Sample(id="s", question="Which fact?", response="The second one")


async def judged(
    judge: FakeJudge, search: FakeSearch | None = None, sample: Sample = SAMPLE, **options: Any
) -> tuple[Judgment, ListTrace]:
    """Judge with every query written, as in the paper, unless options say otherwise."""
    trace = ListTrace()
    context = MethodContext(judge=judge, search=search or FakeSearch(), trace=trace)
    return await Sage.from_options({"rewrite_first": True} | options).judge(sample, context), trace
