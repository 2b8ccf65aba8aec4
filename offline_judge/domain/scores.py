"""How well a judge agrees with people: figures, each with its interval or why it has none."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from offline_judge.domain.base import Frozen
from offline_judge.domain.calibration import Calibration


class Interval(Frozen):
    """A figure with a percentile bootstrap interval over questions.

    Attributes:
        value: The figure over all rows; None where it is undefined.
        low: Lower end; None where the interval is undefined, which it may be beside a value.
        high: Upper end; None together with `low`.
        n: Rows the figure stands on; of a paired difference, those of both sides.
        groups: Questions the rows belong to, which are what is resampled.
        level: Coverage, .95 for the interval from the 2.5th to the 97.5th percentile.
        resamples: Resamples the ends stand on; those in which the figure was undefined are
            left out of it.
        reason: Why value or interval are undefined; empty where both are there.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    n: int = 0
    groups: int = 0
    level: float = 0.95
    resamples: int = 0
    reason: str = ""


class Confusion(Frozen):
    """How often people and judge said what: first what the judge said, and whether rightly."""

    true_positive: int = 0
    false_positive: int = 0
    false_negative: int = 0
    true_negative: int = 0


class Bin(Frozen):
    """Samples whose probability lies in [low, high): their mean, and what people say of them."""

    low: float
    high: float
    n: int
    mean_probability: float
    share_correct: float


class Reliability(Frozen):
    """Bins that hold samples, and the expected calibration error over them.

    `error` is in [0, 1], and None without samples.
    """

    bins: tuple[Bin, ...] = ()
    n: int = 0
    error: float | None = None


class Correction(Frozen):
    """The share called correct, corrected for the judge's known error rates (Rogan-Gladen).

    Attributes:
        share: The corrected share, in [0, 1].
        raw: Its value before it was cut to that range; None where it is undefined.
        clipped: `raw` lies outside the range, so these error rates do not fit these samples.
        sensitivity: Share the judge calls correct of what people call correct; None where each
            fold has its own.
        specificity: Share it calls incorrect of what people call incorrect; likewise.
        source: Where the error rates come from: `calibration`, `held-out` or `cross-fitted`.
        n: Labelled samples the error rates stand on.
    """

    share: Interval
    raw: float | None = None
    clipped: bool = False
    sensitivity: float | None = None
    specificity: float | None = None
    source: Literal["calibration", "held-out", "cross-fitted"]
    n: int = 0


class Figures(Frozen):
    """Agreement of one reading with people, over samples both labelled and scored.

    Attributes:
        accuracy: Share of samples in which both say the same.
        kappa: Cohen's kappa.
        macro_f1: Mean F1 of both classes.
        auroc: Area under the ROC curve of the probability.
        sensitivity: Share called correct of what people call correct.
        specificity: Share called incorrect of what people call incorrect.
        share_correct: Share the judge calls correct.
        share_people: Share people call correct.
        share_gap: `share_correct` less `share_people`.
        corrected: `share_correct` corrected for known error rates.
        confusion: How often people and judge said what.
    """

    accuracy: Interval
    kappa: Interval
    macro_f1: Interval
    auroc: Interval
    sensitivity: Interval
    specificity: Interval
    share_correct: Interval
    share_people: Interval
    share_gap: Interval
    corrected: Correction
    confusion: Confusion


class LabelCounts(Frozen):
    """What became of the labels and of the samples, so that no figure hides what it leaves out.

    Attributes:
        source: The file of labels, or of the run's data where they were in it.
        sha256: Its hash.
        labelled: Samples of the run with a label.
        scored: Of these, samples with a verdict.
        unscored: Of these, outcome or reason to number of samples without one.
        unlabelled: Samples of the run without a label, ties included.
        ties: Samples whose annotators are of two minds.
        several: Samples with more than one annotator.
        blank: Rows without a label.
        unknown: Labels of no sample known to be in the run's data, left out.
        not_taken_up: Labels of samples the run has not come to.
        bad_rows: Rows of the file of labels that were left out.
    """

    source: str
    sha256: str
    labelled: int
    scored: int
    unscored: dict[str, int] = Field(default_factory=dict)
    unlabelled: int = 0
    ties: int = 0
    several: int = 0
    blank: int = 0
    unknown: int = 0
    not_taken_up: int = 0
    bad_rows: int = 0


class Score(Frozen):
    """How well a run agrees with people.

    Attributes:
        run_id: The run.
        labels: What the figures stand on, and what they leave out.
        raw: The judge's own verdicts.
        calibrated: Verdicts as the run's calibration, or the one given, reads them; None without.
        warnings: What a reader of the figures must know, a sentence each.
    """

    run_id: str
    labels: LabelCounts
    raw: Figures
    calibrated: Figures | None = None
    warnings: tuple[str, ...] = ()

    @property
    def chosen(self) -> Figures:
        """The reading the user wants: the calibrated one where there is one."""
        return self.calibrated or self.raw


class Fit(Frozen):
    """What fitting a calibration came to.

    Attributes:
        run_id: The run it was fitted on.
        labels: What it was fitted on, and what that leaves out.
        calibration: What was fitted.
        before: How reliable the judge's own probabilities are.
        after: How reliable calibrated ones are, each sample read by a map that was fitted on
            other questions; None where that cannot be done, see `reason`.
        raw: Agreement of the judge's own verdicts.
        calibrated: Agreement of calibrated ones, likewise on questions not fitted on.
        reason: Why `after` and `calibrated` are None.
        warnings: What a reader of the figures must know, a sentence each.
    """

    run_id: str
    labels: LabelCounts
    calibration: Calibration
    before: Reliability
    after: Reliability | None
    raw: Figures
    calibrated: Figures | None
    reason: str = ""
    warnings: tuple[str, ...] = ()
