"""Agreement between verdicts and people's labels."""

from __future__ import annotations

from collections.abc import Sequence

from offline_judge.domain.run import Agreement


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
    if not labels:
        return None
    from sklearn.metrics import accuracy_score, cohen_kappa_score

    kappa = None
    # With one class on both sides chance alone agrees fully: 0 / 0.
    if len({*labels, *verdicts}) > 1:
        kappa = float(cohen_kappa_score(labels, verdicts))
    return Agreement(
        n=len(labels),
        accuracy=float(accuracy_score(labels, verdicts)),
        kappa=kappa,
        unscored=unscored,
    )
