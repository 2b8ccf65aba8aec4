"""Method `louder`: asks in capitals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from offline_judge.domain.judgment import Judgment
from offline_judge.domain.message import Label
from offline_judge.domain.sample import Sample
from offline_judge.errors import UsageError
from offline_judge.protocols import Method, MethodContext, Untrusted, Values

LABELS = (Label(name="true", text="Yes"), Label(name="false", text="No"))


class Louder:
    """Reads one verdict from a prompt of its own; option `marks` counts exclamation marks."""

    name: ClassVar[str] = "louder"
    searches: ClassVar[bool] = False

    def __init__(self, marks: int) -> None:
        self._marks = marks

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> Louder:
        """Build from raw options."""
        unknown = set(options) - {"marks"}
        if unknown:
            raise UsageError(f"Method `louder` has no option `{unknown.pop()}`.")
        return cls(int(options.get("marks", 1)))

    @property
    def stages(self) -> tuple[str, ...]:
        """One."""
        return ("shout",)

    @property
    def options(self) -> dict[str, Any]:
        """All options with their values."""
        return {"marks": self._marks}

    def largest_prompts(self, sample: Sample) -> tuple[tuple[str, Values, int], ...]:
        """The only one."""
        return (("shout", self._values(sample), 1),)

    async def judge(self, sample: Sample, context: MethodContext) -> Judgment:
        """Read the verdict."""
        labels = (await context.judge.read("shout", self._values(sample), LABELS)).labels
        probability = labels.share("true")
        return Judgment(verdict=probability >= 0.5, probability=probability, outside=labels.outside)

    def _values(self, sample: Sample) -> Values:
        return {
            "question": sample.question.upper(),
            "response": Untrusted(sample.response, "response"),
            "marks": "!" * self._marks,
        }


METHOD: type[Method] = Louder
