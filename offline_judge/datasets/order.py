"""The order in which the samples of a run are taken."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from offline_judge.domain.sample import Sample


def group_samples(
    samples: Sequence[Sample], *, seed: int | None = None
) -> list[tuple[Sample, ...]]:
    """Samples by question, so that those of one question follow one another.

    Args:
        samples: In the order of their file.
        seed: None keeps that order, each question where it first appears. A number gives the
            fixed random order of runs that may stop early: questions by hash of seed and
            question, samples of a question by hash of seed and id. It does not depend on the
            file's order, and other samples more or less do not change it.

    Returns:
        One group a question, none empty.
    """
    groups: dict[str, list[Sample]] = {}
    for sample in samples:
        groups.setdefault(sample.question_key(), []).append(sample)
    if seed is None:
        return [tuple(group) for group in groups.values()]
    return [
        tuple(sorted(groups[key], key=lambda sample: _draw(seed, sample.id)))
        for key in sorted(groups, key=lambda key: _draw(seed, key))
    ]


def _draw(seed: int, name: str) -> str:
    return hashlib.sha256(f"{seed}:{name}".encode("utf-8", "surrogatepass")).hexdigest()
