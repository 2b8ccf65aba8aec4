"""Parting samples by question, so that what is fitted on some is tried on others."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

FOLDS = 5


def fold_of_questions(questions: Iterable[str], folds: int = FOLDS) -> dict[str, int]:
    """Question to fold, from 0: dealt out in turn, in the order of the questions' hashes.

    The order of a file does not matter, and folds differ by one question at most. Fewer
    questions than folds give as many folds as questions.
    """
    ordered = sorted(set(questions), key=_draw)
    return {question: place % folds for place, question in enumerate(ordered)}


def _draw(question: str) -> str:
    return hashlib.sha256(f"fold:{question}".encode("utf-8", "surrogatepass")).hexdigest()
