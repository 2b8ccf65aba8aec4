"""Agreement between a judge and people: figures over rows of label, verdict and probability.

Each figure of a list of rows is a float, or `Undefined` with the reason: never NaN, and never a 0
that stands for "no value". They are the statistics that `offline_judge.metrics.bootstrap` takes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from offline_judge.domain.run import Agreement
from offline_judge.domain.scores import Confusion
from offline_judge.metrics.bootstrap import Undefined

NO_ROWS = Undefined("no sample is both labelled and scored")


class Row(NamedTuple):
    """What people and the judge said of one sample.

    `probability` is that of "correct"; `fold` tells the rows apart on which the same error rates
    are known.
    """

    label: bool
    verdict: bool
    probability: float | None = None
    fold: int = 0


def agreement(labels: Sequence[bool], verdicts: Sequence[bool], unscored: int) -> Agreement | None:
    """Accuracy and Cohen's kappa over samples that are both labelled and scored.

    Args:
        labels: What people said, one a sample.
        verdicts: What the judge said, in the same order.
        unscored: Labelled samples without a verdict; counted beside, never in, the figures.

    Returns:
        None where no sample is both labelled and scored. Kappa is None where it is undefined:
        people and judge gave one and the same class throughout.

    Raises:
        ValueError: the two differ in length.
    """
    if len(labels) != len(verdicts):
        raise ValueError(f"{len(labels)} labels but {len(verdicts)} verdicts")
    rows = [Row(label, verdict) for label, verdict in zip(labels, verdicts, strict=True)]
    right, chance_corrected = accuracy(rows), kappa(rows)
    if isinstance(right, Undefined):
        return None
    return Agreement(
        n=len(rows),
        accuracy=right,
        kappa=None if isinstance(chance_corrected, Undefined) else chance_corrected,
        unscored=unscored,
    )


def confusion(rows: Sequence[Row]) -> Confusion:
    """How often people and judge said what."""
    both, judge_only, people_only, neither = _cells(rows)
    return Confusion(
        true_positive=both,
        false_positive=judge_only,
        false_negative=people_only,
        true_negative=neither,
    )


def accuracy(rows: Sequence[Row]) -> float | Undefined:
    """Share of rows in which the judge says what people say."""
    if not rows:
        return NO_ROWS
    return sum(row[0] == row[1] for row in rows) / len(rows)


def accuracy_of(both: int, judge_only: int, people_only: int, neither: int) -> float | Undefined:
    """Accuracy of the four counts of samples called correct by whom."""
    n = both + judge_only + people_only + neither
    return (both + neither) / n if n else NO_ROWS


def kappa(rows: Sequence[Row]) -> float | Undefined:
    """Cohen's kappa: (p_o - p_e) / (1 - p_e) (Cohen, "A coefficient of agreement", 1960)."""
    return kappa_of(*_cells(rows))


def kappa_of(both: int, judge_only: int, people_only: int, neither: int) -> float | Undefined:
    """Cohen's kappa of the four counts of samples called correct by whom."""
    n = both + judge_only + people_only + neither
    if not n:
        return NO_ROWS
    people, judge = both + people_only, both + judge_only
    # In whole numbers, so that chance alone is told from almost alone.
    expected = people * judge + (n - people) * (n - judge)
    if expected == n * n:
        return Undefined("people and judge say the same of every sample, so chance agrees fully")
    return (n * (both + neither) - expected) / (n * n - expected)


def macro_f1(rows: Sequence[Row]) -> float | Undefined:
    """Mean of the F1 scores of both classes."""
    return macro_f1_of(*_cells(rows))


def macro_f1_of(both: int, judge_only: int, people_only: int, neither: int) -> float | Undefined:
    """Mean F1 of the four counts of samples called correct by whom."""
    wrong = judge_only + people_only
    if not both + wrong + neither:
        return NO_ROWS
    for right, name in ((both, "correct"), (neither, "incorrect")):
        if not right + wrong:
            return Undefined(f"neither people nor judge call any sample {name}")
    return both / (2 * both + wrong) + neither / (2 * neither + wrong)


def auroc(rows: Sequence[Row]) -> float | Undefined:
    """Probability that a correct sample has the higher probability, ties counted half.

    The Mann-Whitney form of the area under the ROC curve (Hanley and McNeil, 1982).
    """
    if not rows:
        return NO_ROWS
    if any(row.probability is None for row in rows):
        return Undefined("samples without a probability")
    import numpy

    labels = numpy.array([row[0] for row in rows], dtype=bool)
    positives = int(labels.sum())
    negatives = len(rows) - positives
    if not positives or not negatives:
        return _one_class(bool(positives))
    values = numpy.array([row[2] for row in rows], dtype=float)
    _, place = numpy.unique(values, return_inverse=True)
    right = numpy.bincount(place[labels], minlength=place.max() + 1)
    wrong = numpy.bincount(place[~labels], minlength=place.max() + 1)
    below = numpy.cumsum(wrong) - wrong
    return float((right * (below + wrong / 2)).sum() / (positives * negatives))


def share_correct(rows: Sequence[Row]) -> float | Undefined:
    """Share of rows the judge calls correct."""
    return sum(row[1] for row in rows) / len(rows) if rows else NO_ROWS


def share_labelled_correct(rows: Sequence[Row]) -> float | Undefined:
    """Share of rows people call correct."""
    return sum(row[0] for row in rows) / len(rows) if rows else NO_ROWS


def sensitivity(rows: Sequence[Row]) -> float | Undefined:
    """Share that the judge calls correct of what people call correct."""
    verdicts = [row[1] for row in rows if row[0]]
    return sum(verdicts) / len(verdicts) if verdicts else _one_class(False)


def specificity(rows: Sequence[Row]) -> float | Undefined:
    """Share that the judge calls incorrect of what people call incorrect."""
    verdicts = [row[1] for row in rows if not row[0]]
    return verdicts.count(False) / len(verdicts) if verdicts else _one_class(True)


@dataclass(frozen=True)
class Corrected:
    """A corrected share in [0, 1], and its value before it was cut to that range."""

    value: float
    raw: float

    @property
    def clipped(self) -> bool:
        """The correction led out of [0, 1], so the known error rates do not fit these samples."""
        return self.raw != self.value


def corrected_share(share: float, sensitivity: float, specificity: float) -> Corrected | Undefined:
    """The share that is correct, from the share a judge with known error rates calls correct.

    (share + specificity - 1) / (sensitivity + specificity - 1) (Rogan and Gladen, "Estimating
    prevalence from the results of a screening test", 1978).
    """
    gain = sensitivity + specificity - 1
    if gain <= 0:
        return Undefined(
            f"sensitivity {sensitivity:.2f} and specificity {specificity:.2f} sum to 1 or less: "
            "the judge is no better than chance"
        )
    raw = (share + specificity - 1) / gain
    return Corrected(min(1.0, max(0.0, raw)), raw)


def _one_class(kind: bool) -> Undefined:
    return Undefined(f"people call every sample {'correct' if kind else 'incorrect'}")


def _cells(rows: Sequence[Row]) -> tuple[int, int, int, int]:
    """Samples called correct by both, by the judge only, by people only, by neither."""
    cells = Counter((row[0], row[1]) for row in rows)
    return cells[True, True], cells[False, True], cells[True, False], cells[False, False]
