"""What an index must answer before it is believed: known vectors, compared with exact search."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from offline_judge.retrieval.evidence.chroma_process import ChromaProcess, IndexFaultError
from offline_judge.retrieval.evidence.vectors import VectorTable

if TYPE_CHECKING:
    from numpy.typing import NDArray

KNOWN = 64
NEIGHBOURS = 5
_CHUNK = 8192
_TOLERANCE = 1e-3  # of a cosine: Chroma reckons in other order and keeps no more digits
_SLACK = 0.1  # of recall below what the index reached when it was filled
_FOUND = 0.9  # of the known vectors must find themselves


def check(child: ChromaProcess, table: VectorTable, last: int, recall: float) -> float:
    """Compare an index with the record; returns its recall of the known vectors' neighbours.

    Args:
        child: Holds the index.
        table: The vectors of record.
        last: The index holds the vectors up to this number.
        recall: What it reached when it was filled; 0 where it was never measured.

    Raises:
        IndexFaultError: it crashes, hangs, or answers wrongly.
    """
    passages, known = table.sample(last, KNOWN)
    expected = table.count_until(last)
    count = child.ask("count")["count"]
    if count != expected:
        _check_ids(child, table, last)
    if not len(passages):
        return 1.0
    ids, distances = child.query(known, min(NEIGHBOURS, expected))
    _check_distances(table, known, ids, distances)
    own = np.mean([number in row for number, row in zip(passages, ids, strict=True)])
    # Equal vectors may stand in for one another, but not for one in ten.
    if own < _FOUND:
        raise IndexFaultError(f"only {own:.0%} of known vectors find themselves")
    reached = _recall(table, last, known, distances)
    if reached < recall - _SLACK:
        raise IndexFaultError(f"it finds {reached:.0%} of known neighbours, not {recall:.0%}")
    return reached


def _check_ids(child: ChromaProcess, table: VectorTable, last: int) -> None:
    """A batch that was added right before a kill may be there beyond `last`, but nothing else."""
    held = set(child.ask("ids")["ids"])
    if not set(table.passages(last)) <= held <= set(table.passages()):
        raise IndexFaultError(f"it holds {len(held):,} vectors, but not those of the record")


def _check_distances(
    table: VectorTable,
    known: NDArray[np.float32],
    ids: list[list[int]],
    distances: list[list[float]],
) -> None:
    numbers, vectors = table.of(sorted({number for row in ids for number in row}))
    found = {int(number): vector for number, vector in zip(numbers, vectors, strict=True)}
    for query, row, told in zip(known, ids, distances, strict=True):
        for number, distance in zip(row, told, strict=True):
            if number not in found:
                raise IndexFaultError(f"it holds passage {number}, which the record does not")
            if abs(1.0 - distance - float(found[number] @ query)) > _TOLERANCE:
                raise IndexFaultError(f"its vector of passage {number} is another one")


def _recall(
    table: VectorTable, last: int, known: NDArray[np.float32], distances: list[list[float]]
) -> float:
    """Share of the exact nearest cosines that the index reached; ties count for one another."""
    best = np.full((len(known), NEIGHBOURS), -2.0, np.float32)
    at = 0
    while at < last:
        at, passages, vectors = table.after(at, _CHUNK, last)
        if not len(passages):
            break
        both = np.hstack([best, known @ vectors.T])
        best = np.partition(both, both.shape[1] - NEIGHBOURS, axis=1)[:, -NEIGHBOURS:]
    wanted = best > -2.0
    reached = 0
    for row, told in zip(best, distances, strict=True):
        worst = min(value for value in row if value > -2.0)
        reached += sum(1.0 - distance >= worst - _TOLERANCE for distance in told)
    return float(reached / int(wanted.sum()))
