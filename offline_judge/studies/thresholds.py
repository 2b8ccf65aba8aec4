"""Thresholds fitted on another labelled set, by one rule for all conditions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from offline_judge.calibration.thresholds import best_threshold
from offline_judge.errors import UsageError
from offline_judge.studies.scores import Score, Table, read_scores

DEFAULT_ROWS = 60
AIM = "kappa"
SCORES = "scores.csv"


@dataclass(frozen=True)
class Fitted:
    """Condition to threshold, and what they were fitted on.

    Attributes:
        thresholds: Of the conditions that could be fitted.
        source: Name of the scores they were fitted on.
        samples: What they were fitted on, the same samples for all conditions.
        missing: Conditions without a threshold, and why.
    """

    thresholds: dict[str, float]
    source: str
    samples: tuple[str, ...]
    missing: dict[str, str]


def parse_source(text: str) -> tuple[Path, int]:
    """Read `PATH` or `PATH:N`: the folder or scores file of another study, and samples to take.

    Raises:
        UsageError: N is 0, or there is no such file.
    """
    path, colon, number = text.rpartition(":")
    count = DEFAULT_ROWS
    if colon and number.isdigit():
        text, count = path, int(number)
    found = scores_file(Path(text))
    if count < 1:
        raise UsageError("A threshold needs samples to be fitted on.", where=text)
    return found, count


def scores_file(path: Path) -> Path:
    """The scores file that a path means: itself, or the one in the folder of a study.

    Raises:
        UsageError: there is none.
    """
    found = path / SCORES if path.is_dir() else path
    if not found.is_file():
        raise UsageError(
            "There are no scores.",
            where=str(found),
            remedy="offline-judge study sage --data FILE --out DIR writes DIR/scores.csv",
        )
    return found


def fit(path: Path, count: int, conditions: Iterable[str]) -> Fitted:
    """Fit each condition's threshold for the best kappa on the first samples that all judged.

    The samples of a scores file stand in the study's fixed random order, so the first ones are a
    random draw.

    Raises:
        DataError: the file holds no scores.
    """
    wanted = tuple(conditions)
    table = Table(score for score in read_scores(path) if score.condition in wanted)
    names = table.common()[:count]
    thresholds: dict[str, float] = {}
    missing: dict[str, str] = {}
    for condition in wanted:
        if condition not in table.conditions:
            missing[condition] = "not in that study"
            continue
        rows = _readable(table.of(condition)[name] for name in names)
        if not rows:
            missing[condition] = "no sample of that study has its probability"
            continue
        labels, probabilities = zip(*rows, strict=True)
        thresholds[condition] = best_threshold(labels, probabilities, AIM)
    return Fitted(thresholds, path.name, names, missing)


def _readable(scores: Iterable[Score]) -> list[tuple[bool, float]]:
    return [
        (score.label, score.probability)
        for score in scores
        if score.scored and score.probability is not None
    ]
