"""Scores of a study: one row a sample and condition, numbers and ids only, as CSV.

They hold no text of any data set, so they may be kept, passed on, and read again for a report.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path

from pydantic import ValidationError, field_validator

from offline_judge.domain.base import Frozen
from offline_judge.domain.judgment import Outcome
from offline_judge.errors import DataError
from offline_judge.metrics.agreement import Row

SCORED = str(Outcome.SCORED)
_UNSCORED = (str(Outcome.UNSCORED), str(Outcome.ERROR))


class Score(Frozen):
    """How one sample was judged under one condition, and what that costs alone.

    Attributes:
        condition: Name of the condition.
        sample: The sample's id.
        question: 12 hex digits of the question's hash; samples that share it are drawn together.
        label: What people said.
        outcome: `scored`, or why there is no verdict.
        reason: Typed reason of that.
        probability: Of "correct"; None unless scored.
        verdict: At the default threshold; None unless scored.
        seconds: Wall time, as if no other condition had paid for any of it.
        prompt_tokens: Tokens sent.
        read_anew: Tokens of these read.
        written: Tokens generated.
        unpriced: Answers from the cache whose price is not known, so that the cost is too low.
        searches: Searches made or reused.
        gold_round: First round whose passages had the one that holds the answer; 0 where none
            had, None where that passage is not known.
    """

    condition: str
    sample: str
    question: str
    label: bool
    outcome: str
    reason: str = ""
    probability: float | None = None
    verdict: bool | None = None
    seconds: float = 0.0
    prompt_tokens: int = 0
    read_anew: int = 0
    written: int = 0
    unpriced: int = 0
    searches: int = 0
    gold_round: int | None = None

    @field_validator("probability", "verdict", "gold_round", mode="before")
    @classmethod
    def _empty(cls, value: object) -> object:
        return None if value == "" else value

    @property
    def scored(self) -> bool:
        """There is a verdict."""
        return self.outcome == SCORED and self.verdict is not None

    @property
    def ended(self) -> bool:
        """It was judged, with or without a verdict."""
        return self.scored or self.outcome in _UNSCORED

    def row(self, threshold: float | None = None) -> Row:
        """Label, verdict and probability; the verdict at a threshold where one is given."""
        verdict = bool(self.verdict)
        if threshold is not None and self.probability is not None:
            verdict = self.probability >= threshold
        return Row(self.label, verdict, self.probability)


class Table:
    """Scores by condition and sample.

    Args:
        scores: Any order; of several of one sample and condition the last counts.
    """

    def __init__(self, scores: Iterable[Score]) -> None:
        self._by: dict[str, dict[str, Score]] = {}
        for score in scores:
            self._by.setdefault(score.condition, {})[score.sample] = score

    @property
    def conditions(self) -> tuple[str, ...]:
        """In the order of the rows."""
        return tuple(self._by)

    def common(self) -> tuple[str, ...]:
        """Samples that all conditions judged, which are what is compared; scored or not."""
        if not self._by:
            return ()
        first, *others = self._by.values()
        return tuple(
            name
            for name, score in first.items()
            if score.ended and all(name in other and other[name].ended for other in others)
        )

    def of(self, condition: str) -> dict[str, Score]:
        """Sample id to score."""
        return self._by[condition]

    def left_out(self) -> int:
        """Samples that some condition judged and another did not."""
        some = {name for one in self._by.values() for name, score in one.items() if score.ended}
        return len(some) - len(self.common())


def write_scores(scores: Iterable[Score]) -> str:
    """CSV, its header first."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(Score.model_fields), lineterminator="\n")
    writer.writeheader()
    for score in scores:
        writer.writerow({name: _cell(value) for name, value in score.model_dump().items()})
    return text.getvalue()


def read_scores(path: Path) -> tuple[Score, ...]:
    """The rows of a scores file.

    Raises:
        DataError: it cannot be read, or a row is no score; names the line and the column.
    """
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"Cannot read scores: {error}", where=str(path)) from error
    if not rows:
        raise DataError("The file holds no scores.", where=str(path))
    return tuple(_score(row, line, path) for line, row in enumerate(rows, 2))


def _score(row: dict[str, str], line: int, path: Path) -> Score:
    try:
        return Score.model_validate({k: v for k, v in row.items() if k in Score.model_fields})
    except ValidationError as error:
        first = error.errors()[0]
        column = ".".join(str(part) for part in first["loc"])
        raise DataError(
            f"No score in line {line}: `{column}`: {first['msg']}",
            where=str(path),
            remedy="Scores are the file `scores.csv` that a study writes.",
        ) from None


def _cell(value: object) -> object:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.6g}" if isinstance(value, float) else value


def questions(scores: Sequence[Score]) -> dict[str, list[Score]]:
    """Scores by question."""
    found: dict[str, list[Score]] = {}
    for score in scores:
        found.setdefault(score.question, []).append(score)
    return found
