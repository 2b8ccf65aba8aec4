"""How far a probability is from how often it comes true: expected calibration error."""

from __future__ import annotations

from collections.abc import Sequence

from offline_judge.domain.scores import Bin, Reliability

BINS = 10


def reliability(labels: Sequence[bool], probabilities: Sequence[float]) -> Reliability:
    """The reliability diagram and its expected calibration error.

    Ten bins of equal width over [0, 1], each with its lower edge and without its upper one but
    for the last, by the probability of "correct". The error is the mean over samples of how far
    their bin's mean probability is from the share that people call correct in it: the sum over
    bins of n_b / n * |mean probability - share| (Naeini, Cooper and Hauskrecht, "Obtaining well
    calibrated probabilities using Bayesian binning", 2015). Bins without samples are left out.

    Args:
        labels: What people said, one a sample.
        probabilities: Of "correct", in the same order, in [0, 1].

    Returns:
        `error` is None without samples.

    Raises:
        ValueError: the two differ in length, or a probability is out of range.
    """
    if len(labels) != len(probabilities):
        raise ValueError(f"{len(labels)} labels but {len(probabilities)} probabilities")
    filled: dict[int, list[tuple[bool, float]]] = {}
    for label, probability in zip(labels, probabilities, strict=True):
        if not 0 <= probability <= 1:
            raise ValueError(f"{probability} is no probability")
        filled.setdefault(min(BINS - 1, int(BINS * probability)), []).append((label, probability))
    bins = tuple(_bin(place, filled[place]) for place in sorted(filled))
    total = len(labels)
    gaps = [found.n * abs(found.mean_probability - found.share_correct) for found in bins]
    return Reliability(bins=bins, n=total, error=sum(gaps) / total if total else None)


def _bin(place: int, members: Sequence[tuple[bool, float]]) -> Bin:
    n = len(members)
    return Bin(
        low=place / BINS,
        high=(place + 1) / BINS,
        n=n,
        mean_probability=sum(probability for _, probability in members) / n,
        share_correct=sum(label for label, _ in members) / n,
    )
